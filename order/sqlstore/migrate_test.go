package sqlstore_test

import (
	"context"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// grown is SQLite with more migrations than the package has.
type grown struct {
	sqlite.Dialect
	more map[string]string
}

func (d grown) Migrations() fs.FS {
	files := fstest.MapFS{}
	for name, text := range d.more {
		files["migrations/"+name+".sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestEachMigrationIsAppliedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	db := onlySQLite.opened(t, onlySQLite.place(t))
	more := map[string]string{"0001_first": "CREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES (1);\n"}
	s := &shop{Store: sqlstore.New(db, grown{more: more}), t: t, db: onlySQLite}
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Migrate(t.Context()))
	require.Equal(t, 1, s.count(`SELECT SUM(x) FROM a`))

	more["0002_second"] = "-- The second; in two lines.\nUPDATE a\nSET x = x * 10;\nINSERT INTO a VALUES (5);\n"
	more["0003_third"] = "UPDATE a SET x = x + 100;\n-- the end\n"
	require.NoError(t, s.Migrate(t.Context()))
	require.Equal(t, 110+105, s.count(`SELECT SUM(x) FROM a`))
	require.Equal(t, "0001_first,0002_second,0003_third", s.text(`SELECT GROUP_CONCAT(name ORDER BY version) FROM orderwheel_migrations`))

	delete(more, "0003_third")
	require.NoError(t, s.Migrate(t.Context()), "an older program leaves what a newer one did")
	require.Equal(t, 3, s.count(`SELECT COUNT(*) FROM orderwheel_migrations`))
}

func TestAMigrationThatFailsIsNamedAndAppliesNothing(t *testing.T) {
	t.Parallel()
	db := onlySQLite.opened(t, onlySQLite.place(t))
	more := map[string]string{"0001_first": "CREATE TABLE a (x INTEGER);\n", "0002_second": "INSERT INTO a VALUES (1);\nINSERT INTO none VALUES (1);\n"}
	s := &shop{Store: sqlstore.New(db, grown{more: more}), t: t, db: onlySQLite}
	require.ErrorContains(t, s.Migrate(t.Context()), "0002_second")
	require.Zero(t, s.count(`SELECT COUNT(*) FROM sqlite_schema`))
	more["0002_second"] = "INSERT INTO a VALUES (1);\n"
	require.NoError(t, s.Migrate(t.Context()))
	require.Equal(t, 1, s.count(`SELECT COUNT(*) FROM a`))
}

func TestMigrationsThatAreMisnumberedOrCutOffAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"none":           {nil, "no migrations"},
		"a gap":          {map[string]string{"0001_a": "", "0003_c": ""}, "0003_c.sql: its number should be 0002"},
		"the same twice": {map[string]string{"0001_a": "", "0001_b": ""}, "0001_b.sql: its number should be 0002"},
		"an open end":    {map[string]string{"0001_a": "CREATE TABLE a (x INTEGER);\nCREATE TABLE b (x INTEGER)\n"}, `"CREATE TABLE b (x INTEGER)" is part of no statement`},
		"not a number":   {map[string]string{"first": ""}, "first.sql: its number should be 0001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sqlstore.New(onlySQLite.opened(t, onlySQLite.place(t)), grown{more: c.files})
			require.ErrorContains(t, s.Migrate(t.Context()), c.says)
		})
	}
}

func TestManyMigrateAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		dsn := db.place(t)
		var wg sync.WaitGroup
		for range 8 {
			s := sqlstore.New(db.opened(t, dsn), db.dialect)
			wg.Go(func() {
				if err := s.Migrate(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}
