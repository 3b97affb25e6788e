package wheel

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine of an engine outlives its Stop.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
