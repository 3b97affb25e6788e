package dbserver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var kinds = map[string]func(context.Context, ...string) (*dbserver.Server, error){
	"mariadb":  dbserver.StartMariaDB,
	"postgres": dbserver.StartPostgres,
}

func onEach(t *testing.T, test func(*testing.T, *dbserver.Server)) {
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := start(t.Context())
			if errors.Is(err, dbserver.ErrNotInstalled) && os.Getenv("ORDERWHEEL_REQUIRE_SERVERS") != "1" {
				t.Skip("SKIPPED, NOT TESTED:", err)
			}
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Stop()) })
			test(t, s)
		})
	}
}

func dial(s *dbserver.Server) error {
	conn, err := net.DialTimeout("tcp", s.Addr(), 10*time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestAServerIsKilledAndComesBackOnItsPort(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *dbserver.Server) {
		addr := s.Addr()
		require.NoError(t, dial(s))
		s.Kill()
		s.Kill() // twice does nothing
		require.Error(t, dial(s))
		require.NoError(t, s.Restart(t.Context()))
		require.Equal(t, addr, s.Addr())
		require.NoError(t, dial(s))
		require.NoError(t, s.Restart(t.Context()), "also of one that runs")
		require.NoError(t, s.Stop())
		require.Error(t, dial(s))
	})
}

func TestNothingIsLeftOfAStartThatIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // another user gets through
	t.Setenv("TMPDIR", dir)
	for _, start := range kinds {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := start(ctx)
		require.Error(t, err)
		_, err = start(t.Context(), "--no-such-argument")
		require.ErrorContains(t, err, "has ended")
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
