package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// migration is one change of the schema.
type migration struct {
	version int
	name    string // of its file
	stmts   []string
}

// Migrate brings the tables of this package to what this version of it needs: it applies, in their
// order, the migrations that the database has not had, and nothing where it has had all. Which it
// has had stands in the table orderwheel_migrations.
//
// Call it when the program starts. Many processes may do so at once: one migrates, the others wait
// for it. A migration leaves what the version before it needs, so both may run at once during a
// deploy. A database that is ahead of this program is left as it is.
//
// Where the database applies DDL in transactions (SQLite, PostgreSQL) all of it is applied or
// nothing. MySQL commits each statement; what was cut off half way is completed by the next call.
func (s *Store) Migrate(ctx context.Context) error {
	list, err := migrations(s.dialect.Migrations())
	if err == nil {
		err = s.write(ctx, func(t *tx) error { return t.migrate(list) })
	}
	if err != nil {
		return fmt.Errorf("migrate the order tables: %w", err)
	}
	return nil
}

func (t *tx) migrate(list []migration) (err error) {
	lock, unlock := t.dialect.MigrationLock()
	if lock != "" {
		var got bool
		if _, err := t.get(lock, nil, &got); err != nil {
			return err
		}
		if !got {
			return fmt.Errorf("%w: another process migrates", errMoved)
		}
	}
	if unlock != "" {
		// The lock is the connection's, which other transactions will use. Where the connection is
		// lost so is the lock.
		defer func() {
			t.ctx = context.WithoutCancel(t.ctx) // or the connection would keep it, where ctx has ended
			_, unlockErr := t.exec(unlock)
			err = errors.Join(err, unlockErr)
		}()
	}
	_, err = t.exec(`CREATE TABLE IF NOT EXISTS orderwheel_migrations (version INTEGER NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL)`)
	if err != nil {
		return err
	}
	for _, m := range list {
		if err := t.apply(m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func (t *tx) apply(m migration) error {
	var name string
	done, err := t.get(`SELECT name FROM orderwheel_migrations WHERE version = ?`, []any{m.version}, &name)
	if err != nil || done {
		return err
	}
	for _, stmt := range m.stmts {
		if _, err := t.tx.ExecContext(t.ctx, stmt); err != nil {
			return err
		}
	}
	_, err = t.exec(`INSERT INTO orderwheel_migrations (version, name) VALUES (?, ?)`, m.version, m.name)
	return err
}

// migrations reads the files of a dialect, which are named 0001_word.sql, 0002_word.sql and so on.
func migrations(dir fs.FS) ([]migration, error) {
	files, err := fs.Glob(dir, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	var list []migration
	for i, file := range files {
		m := migration{name: strings.TrimSuffix(strings.TrimPrefix(file, "migrations/"), ".sql")}
		number, _, _ := strings.Cut(m.name, "_")
		if m.version, err = strconv.Atoi(number); err != nil || m.version != i+1 {
			return nil, fmt.Errorf("migration %s: its number should be %04d", file, i+1)
		}
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		if m.stmts, err = statements(string(text)); err != nil {
			return nil, fmt.Errorf("migration %s: %w", file, err)
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, errors.New("the dialect has no migrations")
	}
	return list, nil
}

// statements splits a file at the semicolons that end a line. After the last there may be comments.
func statements(text string) ([]string, error) {
	list := strings.SplitAfter(text, ";\n")
	last := len(list) - 1
	for line := range strings.Lines(list[last]) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return nil, fmt.Errorf("%q is part of no statement: end it with a semicolon and a newline", line)
		}
	}
	return list[:last], nil
}
