package dbtest_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.Stopping(m)) }

func TestEachTestHasADatabaseOfItsOwnOnOneServer(t *testing.T) {
	t.Parallel()
	for driver, database := range map[string]func(testing.TB) dbtest.Database{"mysql": dbtest.MariaDB, "pgx": dbtest.Postgres} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			one, two := database(t), database(t)
			require.Equal(t, one.Server, two.Server)
			for _, d := range []dbtest.Database{one, two} {
				db, err := sql.Open(driver, d.DSN())
				require.NoError(t, err)
				defer db.Close()
				_, err = db.ExecContext(t.Context(), `CREATE TABLE t (a INT)`)
				require.NoError(t, err, "it does not exist yet")
			}
		})
	}
}
