package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/bench/internal/scheme/schemetest"
	"github.com/orderwheel/orderwheel/internal/dbtest"
)

func TestMain(m *testing.M) {
	if status, worker := scheme.Work(here); worker { // this binary is the child too
		os.Exit(status)
	}
	os.Exit(dbtest.Stopping(m).Run())
}

// What is measured must do the job.
func TestEachSchemeClosesWhatIsNotPaid(t *testing.T) {
	t.Parallel()
	for name, factory := range here {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schemetest.ClosesWhatIsNotPaid(t, name, factory, schemetest.Setup{Every: 50 * time.Millisecond})
		})
	}
}

func TestEachRowIsOfASchemeThatIsKnown(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, r := range rows {
		_, known := here[r.scheme]
		require.NotEqual(t, r.peer, known, r.name)
		require.False(t, seen[r.name], r.name)
		seen[r.name] = true
		require.Positive(t, r.patience(1))
	}
	for name := range here {
		require.Contains(t, strings.Join(schemesOf(rows), " "), name)
	}
}

func schemesOf(rows []row) (names []string) {
	for _, r := range rows {
		names = append(names, r.scheme)
	}
	return names
}
