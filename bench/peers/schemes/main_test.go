package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/rabbit"
	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/bench/internal/scheme/schemetest"
	"github.com/orderwheel/orderwheel/internal/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Stopping(m).Run()) }

// What is measured must do the job.
func TestRabbitMQClosesWhatIsNotPaid(t *testing.T) {
	t.Parallel()
	node, err := rabbit.Start(t.Context())
	if errors.Is(err, rabbit.ErrNotInstalled) && os.Getenv("ORDERWHEEL_REQUIRE_SERVERS") != "1" {
		t.Skip("SKIPPED, NOT TESTED:", err)
	}
	require.NoError(t, err)
	t.Cleanup(node.Stop)
	for name, factory := range map[string]scheme.Factory{"rabbitmq-dlx": newRabbitDLX, "rabbitmq-table": newRabbitTable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schemetest.ClosesWhatIsNotPaid(t, name, factory, schemetest.Setup{Every: 50 * time.Millisecond, AMQP: node.URL()})
		})
	}
}

func TestAsynqClosesWhatIsNotPaid(t *testing.T) {
	t.Parallel()
	schemetest.ClosesWhatIsNotPaid(t, "asynq", newAsynq, schemetest.Setup{Early: time.Second})
}
