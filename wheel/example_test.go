package wheel_test

import (
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/wheel"
)

func ExampleNew() {
	nowMS := func() int64 { return time.Now().UnixMilli() } // an engine passes the store's clock

	fired := make(chan string, 10)
	w := wheel.New(nowMS)
	defer w.Stop()
	w.Start(func(batch []wheel.Due) {
		for _, d := range batch {
			fired <- d.ID // buffered: fire must not block
		}
	})

	const hour = 3600_000
	now := nowMS()
	w.Schedule("order-1", now+20)
	w.Schedule("order-2", now+hour)
	w.Schedule("order-2", now+50) // moved
	w.Schedule("order-3", now+hour)
	fmt.Println("paid in time:", w.Cancel("order-3"))
	fmt.Println("expired:", <-fired)
	fmt.Println("expired:", <-fired)
	fmt.Println("left:", w.Len())
	// Output:
	// paid in time: true
	// expired: order-1
	// expired: order-2
	// left: 0
}
