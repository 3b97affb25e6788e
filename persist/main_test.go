package persist_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine is left behind, also none of the attempts that were left alone.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
