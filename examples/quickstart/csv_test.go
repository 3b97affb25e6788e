package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

const head = "order_no,created_at,paid_at\n"

func TestOrdersAreReadFromCSV(t *testing.T) {
	t.Parallel()
	want := []purchase{
		{orderNo: "a", pays: true, payAfter: 90 * time.Second},
		{orderNo: "b"},
		{orderNo: "c", pays: true}, // in the instant of its creation
	}
	const rows = "a,2024-02-29T23:59:00Z,2024-03-01T00:00:30Z\n" +
		"b,2024-02-29T23:59:00Z,\n" +
		"c,2024-02-29T23:59:00.5+02:00,2024-02-29T21:59:00.5Z\n"
	for name, text := range map[string]string{
		"plain":                 head + rows,
		"CRLF":                  strings.ReplaceAll(head+rows, "\n", "\r\n"),
		"byte order mark":       "\ufeff" + head + rows,
		"no newline at the end": head + strings.TrimSuffix(rows, "\n"),
		"blank lines":           "\n" + strings.ReplaceAll(head+rows, "\n", "\n\n"),
		"quoted fields":         head + strings.ReplaceAll(rows, "a,", `"a",`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseOrders("orders.csv", strings.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestAnOrderNumberMayBeAnyText(t *testing.T) {
	t.Parallel()
	for _, no := range []string{strings.Repeat("x", 256), "汉字", "with space", "a;b:c{d}", "'; DROP TABLE orders"} {
		got, err := parseOrders("orders.csv", strings.NewReader(head+no+",2024-01-01T00:00:00Z,\n"))
		require.NoError(t, err)
		require.Equal(t, []purchase{{orderNo: no}}, got)
	}
}

func TestABadFileIsRefusedWithPlaceAndRemedy(t *testing.T) {
	t.Parallel()
	const good = "a,2024-01-01T00:00:00Z,\n"
	for name, c := range map[string]struct {
		text string
		want []string // after "orders.csv:"
	}{
		"an empty file":          {"", []string{"1:1: found an empty file, expected the header order_no,created_at,paid_at"}},
		"only a byte order mark": {"\ufeff", []string{"1:1: found an empty file, expected the header order_no,created_at,paid_at"}},
		"only a header":          {head, []string{"2:1: found no row after the header, expected at least one order"}},
		"no header":              {good, []string{`1:1: found "a,2024-01-01T00:00:00Z,", expected the header order_no,created_at,paid_at`}},
		"a header with another name": {"order_no,created,paid_at\n" + good,
			[]string{`1:10: found "order_no,created,paid_at", expected the header order_no,created_at,paid_at`}},
		"a header with a name too many": {"order_no,created_at,paid_at,amount\n" + good,
			[]string{`1:29: found "order_no,created_at,paid_at,amount", expected the header order_no,created_at,paid_at`}},
		"a header in capitals, after a byte order mark": {"\ufeffORDER_NO,created_at,paid_at\n" + good,
			[]string{`1:1: found "ORDER_NO,created_at,paid_at", expected the header order_no,created_at,paid_at`}},
		"a short row":        {head + good + "b,2024-01-01T00:00:00Z\n", []string{"3:3: found 2 fields, expected 3: order_no,created_at,paid_at"}},
		"a row of one field": {head + "b\n", []string{"2:1: found 1 field, expected 3: order_no,created_at,paid_at"}},
		"a long row":         {head + "b,2024-01-01T00:00:00Z,,9,9\n", []string{"2:25: found 5 fields, expected 3: order_no,created_at,paid_at"}},
		"a creation that is no time": {head + "b,yesterday,\n",
			[]string{`2:3: found created_at "yesterday", expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
		"no creation": {head + "b,,\n", []string{`2:3: found created_at "", expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
		"a creation without zone": {head + "b,2024-01-01T00:00:00,\n",
			[]string{`2:3: found created_at "2024-01-01T00:00:00", expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
		"a day that does not exist": {head + "b,2023-02-29T00:00:00Z,\n",
			[]string{`2:3: found created_at "2023-02-29T00:00:00Z", expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
		"an hour of one digit": {head + "b,2024-01-01T1:00:00Z,\n",
			[]string{`2:3: found created_at "2024-01-01T1:00:00Z", expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
		"a payment that is no time": {head + "b,2024-01-01T00:00:00Z,never\n",
			[]string{`2:24: found paid_at "never", expected an RFC 3339 time like 2017-10-02T10:56:33Z, or nothing for never`}},
		"a payment of a space": {head + "b,2024-01-01T00:00:00Z, \n",
			[]string{`2:24: found paid_at " ", expected an RFC 3339 time like 2017-10-02T10:56:33Z, or nothing for never`}},
		"a payment before the creation": {head + "b,2024-01-01T00:00:01Z,2024-01-01T00:00:00Z\n",
			[]string{"2:24: found paid_at 2024-01-01T00:00:00Z, expected created_at, 2024-01-01T00:00:01Z, or later"}},
		"an empty order_no": {head + ",2024-01-01T00:00:00Z,\n", []string{"2:1: found an empty order_no, expected 1 to 256 bytes"}},
		"an order_no too long": {head + strings.Repeat("x", 257) + ",2024-01-01T00:00:00Z,\n",
			[]string{"2:1: found an order_no of 257 bytes, expected 1 to 256 bytes"}},
		"an order_no that is no text": {head + "\xff,2024-01-01T00:00:00Z,\n", []string{`2:1: found order_no "\xff", expected UTF-8 without a NUL`}},
		"an order_no with a NUL":      {head + "a\x00,2024-01-01T00:00:00Z,\n", []string{`2:1: found order_no "a\x00", expected UTF-8 without a NUL`}},
		"a duplicate order_no": {head + good + "b,2024-01-01T00:00:00Z,\n" + good,
			[]string{`4:1: found order_no "a" again, first on line 2, expected each order once`}},
		"a duplicate order_no after a bad row": {head + "a,x,\n" + good, []string{
			`2:3: found created_at "x", expected an RFC 3339 time like 2017-10-02T10:56:33Z`,
			`3:1: found order_no "a" again, first on line 2, expected each order once`}},
		"a stray quote": {head + "a\"b,2024-01-01T00:00:00Z,\n",
			[]string{"2:2: found a quote inside a field that does not begin with one, expected a field that is quoted whole, its own quotes doubled"}},
		"a quote that does not end": {head + good + "\"b,2024-01-01T00:00:00Z,\n",
			[]string{"3:26: found a quoted field that does not end, or goes on after its quote, expected a field that is quoted whole, its own quotes doubled"}},
		"a long text is cut": {head + "b," + strings.Repeat("9", 100) + ",\n",
			[]string{`2:3: found created_at "` + strings.Repeat("9", 60) + `" and so on, expected an RFC 3339 time like 2017-10-02T10:56:33Z`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseOrders("orders.csv", strings.NewReader(c.text))
			require.Empty(t, got)
			require.IsType(t, fileFaults{}, err)
			for i := range c.want {
				c.want[i] = "orders.csv:" + c.want[i]
			}
			require.Equal(t, strings.Join(c.want, "\n"), err.Error())
		})
	}
}

func TestOfManyBadRowsTheFirstTenAreTold(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString(head)
	for i := range 30 {
		fmt.Fprintf(&text, "%d,bad,\n", i)
	}
	_, err := parseOrders("orders.csv", strings.NewReader(text.String()))
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 11)
	require.Contains(t, lines[9], "orders.csv:11:3: ")
	require.Equal(t, "orders.csv: 20 more rows are wrong", lines[10])
}

func TestAReadErrorIsNoFaultOfTheFile(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	_, err := parseOrders("orders.csv", io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	require.Equal(t, "orders.csv: disk on fire", err.Error())
}

func TestAMissingFileIsNamed(t *testing.T) {
	t.Parallel()
	_, err := readOrders("no such.csv")
	require.EqualError(t, err, "open no such.csv: no such file or directory")
	_, err = readOrders(t.TempDir())
	require.ErrorContains(t, err, "is a directory")
}

func FuzzParseOrders(f *testing.F) {
	f.Add(head + "a,2024-01-01T00:00:00Z,2024-01-01T00:00:01Z\n")
	f.Add("\ufeff" + head + "\"a\"\"\",2024-01-01T00:00:00+01:00,\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		purchases, err := parseOrders("f", strings.NewReader(text))
		if err != nil {
			require.NotEmpty(t, err.Error())
			for line := range strings.SplitSeq(err.Error(), "\n") {
				require.Regexp(t, `^f:(\d+:\d+: found .+, expected .+| \d+ more rows are wrong)$`, line)
			}
			return
		}
		require.NotEmpty(t, purchases)
		seen := map[string]bool{}
		for _, p := range purchases {
			require.False(t, seen[p.orderNo])
			seen[p.orderNo] = true
			require.NotEmpty(t, p.orderNo)
			require.GreaterOrEqual(t, p.payAfter, time.Duration(0))
		}
	})
}
