package wheel_test

import (
	"testing"

	"github.com/orderwheel/orderwheel/wheel"
	"github.com/orderwheel/orderwheel/wheel/wheeltest"
)

func TestConformance(t *testing.T) { wheeltest.Run(t, wheel.New) }
