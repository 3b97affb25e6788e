package sqlstore_test

import (
	"testing"

	"github.com/orderwheel/orderwheel/internal/caselist"
)

// Each case of the section Orders of cases.md is named by the comment of a test here.
func TestEveryCaseIsTested(t *testing.T) {
	t.Parallel()
	caselist.Check(t, []int{127, 128, 129, 131, 133}, nil)
}
