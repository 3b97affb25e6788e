package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string, o sqlite.Options) *sql.DB {
	t.Helper()
	db, err := sqlite.OpenWith(t.Context(), path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestEachConnectionIsSetUp(t *testing.T) {
	t.Parallel()
	for sync, want := range map[sqlite.Sync]string{sqlite.SyncFull: "2", sqlite.SyncNormal: "1"} {
		db := open(t, filepath.Join(t.TempDir(), "orders.db"), sqlite.Options{Sync: sync})
		for range 3 {
			conn, err := db.Conn(t.Context()) // held, so that the next is another
			require.NoError(t, err)
			defer conn.Close()
			for pragma, want := range map[string]string{
				"journal_mode": "wal", "synchronous": want, "foreign_keys": "1", "busy_timeout": "100", "fullfsync": "1",
			} {
				var got string
				require.NoError(t, conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
				require.Equal(t, want, got, pragma)
			}
		}
	}
}

func TestOpenIsDurableUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	defer db.Close()
	var got int
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&got))
	require.Equal(t, 2, got)
}

func TestAPathIsAFileNameAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plain.db", "with space.db", "q?mode=memory.db", "hash#1.db", "100%41.db", "ünïcode.db", "a&b=c.db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), name)
		db := open(t, path, sqlite.Options{})
		require.NoError(t, sqlstore.New(db, sqlite.Dialect{}).Migrate(t.Context()))
		require.FileExists(t, path)
	}
}

func TestARelativePathIsRelativeToTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	open(t, "orders.db", sqlite.Options{})
	require.FileExists(t, "orders.db")
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	require.NoError(t, os.WriteFile(text, []byte("this is not a database, but a text of some length, which is another thing"), 0o600))
	for name, c := range map[string]struct {
		path string
		o    sqlite.Options
		says string
	}{
		"no path":           {"", sqlite.Options{}, "name a file"},
		"memory":            {":memory:", sqlite.Options{}, "name a file"},
		"an unknown Sync":   {filepath.Join(dir, "x.db"), sqlite.Options{Sync: 9}, "Sync is 9"},
		"a missing folder":  {filepath.Join(dir, "none", "x.db"), sqlite.Options{}, filepath.Join(dir, "none", "x.db")},
		"not a database":    {text, sqlite.Options{}, "not a database"},
		"a folder":          {dir, sqlite.Options{}, dir},
		"two faults, twice": {":memory:", sqlite.Options{Sync: -1}, "Sync is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqlite.OpenWith(t.Context(), c.path, c.o)
			require.ErrorContains(t, err, c.says)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sqlite.Open(ctx, filepath.Join(dir, "y.db"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestManyOpenANewFileAtOnce(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "orders.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				db, err := sqlite.OpenWith(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				if err := sqlstore.New(db, sqlite.Dialect{}).Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "orders.db"), sqlite.Options{})
	s := sqlstore.New(db, sqlite.Dialect{})
	require.NoError(t, s.Migrate(t.Context()))
	writer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = writer.Exec(`INSERT INTO sku_stock VALUES ('a', 1, 0, 0)`)
	require.NoError(t, err)

	reader, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	var n int
	require.NoError(t, reader.QueryRow(`SELECT COUNT(*) FROM sku_stock`).Scan(&n))
	require.Zero(t, n, "not committed yet")
	require.NoError(t, reader.Rollback())
	require.NoError(t, writer.Rollback())
}

func TestWhatWasWrittenIsThereAfterReopening(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "orders.db")
	for i := range 3 {
		db, err := sqlite.Open(t.Context(), path)
		require.NoError(t, err)
		s := sqlstore.New(db, sqlite.Dialect{})
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.AddStock(t.Context(), "a", 1))
		var n int
		require.NoError(t, db.QueryRow(`SELECT stock FROM sku_stock`).Scan(&n))
		require.Equal(t, i+1, n)
		require.NoError(t, db.Close())
	}
}

func TestTheDialectKnowsItsErrors(t *testing.T) {
	t.Parallel()
	d := sqlite.Dialect{}
	path := filepath.Join(t.TempDir(), "orders.db")
	db := open(t, path, sqlite.Options{})
	require.NoError(t, sqlstore.New(db, d).Migrate(t.Context()))
	coupon := `INSERT INTO user_coupons VALUES ('c', 'u', 'unused', NULL, 0)`
	_, err := db.Exec(coupon)
	require.NoError(t, err)
	_, duplicate := db.Exec(coupon)
	_, check := db.Exec(`INSERT INTO sku_stock VALUES ('a', -1, 0, 0)`)
	_, foreign := db.Exec(`INSERT INTO order_items VALUES ('none', 'none', 1)`)
	_, typed := db.Exec(`INSERT INTO sku_stock VALUES ('a', 'many', 0, 0)`)

	writer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, busy := db.Exec(`INSERT INTO sku_stock VALUES ('a', 1, 0, 0)`)
	require.NoError(t, writer.Rollback())

	for name, c := range map[string]struct {
		err                  error
		duplicate, retryable bool
	}{
		"none":      {nil, false, false},
		"another":   {errors.New("another"), false, false},
		"duplicate": {duplicate, true, false},
		"wrapped":   {fmt.Errorf("more: %w", duplicate), true, false},
		"check":     {check, false, false},
		"foreign":   {foreign, false, false},
		"typed":     {typed, false, false},
		"busy":      {busy, false, true},
	} {
		require.Equal(t, c.duplicate, d.Duplicate(c.err), "%s: %v", name, c.err)
		require.Equal(t, c.retryable, d.Retryable(c.err), "%s: %v", name, c.err)
	}
	require.Error(t, check)
	require.Error(t, foreign)
	require.Error(t, typed)
	require.Equal(t, "SELECT ?", d.Rebind("SELECT ?"))
	require.ErrorIs(t, func() error { _, err := sqlite.Connector("", sqlite.Options{}); return err }(), order.ErrInvalid)
}
