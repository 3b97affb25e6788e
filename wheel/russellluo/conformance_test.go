package russellluo

import (
	"testing"

	"github.com/orderwheel/orderwheel/wheel/wheeltest"
)

// doc.go says why each of these cannot be promised.
var skips = []string{
	"one slot is one batch",
	"a jump of the clock hands over all that became due",
	"after a step back nothing happens until the clock has caught up",
	"Stop leaves no goroutine",
}

func TestConformance(t *testing.T) { wheeltest.Run(t, New, skips...) }
