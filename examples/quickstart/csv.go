package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A purchase is what one customer does: place an order, and perhaps pay it some
// time later.
type purchase struct {
	orderNo  string
	pays     bool
	payAfter time.Duration // from the creation to the payment
}

var header = []string{"order_no", "created_at", "paid_at"}

const (
	maxOrderNo = 256 // bytes
	maxShown   = 10  // faults of a file that are told one by one
	timeForm   = "an RFC 3339 time like 2017-10-02T10:56:33Z"
)

// fileFaults are the faults of a CSV file, each one line.
type fileFaults []string

func (f fileFaults) Error() string { return strings.Join(f, "\n") }

// readOrders reads the purchases of a CSV file. What is wrong inside the file
// comes back as fileFaults.
func readOrders(path string) ([]purchase, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseOrders(path, file)
}

// parseOrders reads purchases from the text of a CSV file called name. A byte
// order mark and CRLF are fine; the header must stand as it is.
func parseOrders(name string, text io.Reader) ([]purchase, error) {
	p := parser{name: name, firstLine: map[string]int{}}
	in := bufio.NewReader(text)
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = in.Discard(3)
	}
	p.csv = csv.NewReader(in)
	p.csv.FieldsPerRecord = -1 // parse says it better
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(p.faults) > maxShown {
		p.faults = append(p.faults[:maxShown], fmt.Sprintf("%s: %d more rows are wrong", name, len(p.faults)-maxShown))
	}
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	return p.purchases, nil
}

type parser struct {
	name      string
	csv       *csv.Reader
	faults    fileFaults
	purchases []purchase
	firstLine map[string]int // of each order number
}

// parse reads the file to its end, or to where nothing after could be trusted.
// Its error is one of reading.
func (p *parser) parse() error {
	head, err := p.read()
	switch {
	case errors.Is(err, io.EOF):
		p.fault(1, 1, "an empty file", "the header "+strings.Join(header, ","))
		return nil
	case err != nil || head == nil:
		return err
	}
	if !p.isHeader(head) {
		return nil
	}
	headLine, _ := p.csv.FieldPos(0)
	for {
		row, err := p.read()
		switch {
		case errors.Is(err, io.EOF):
			if len(p.purchases) == 0 && len(p.faults) == 0 {
				p.fault(headLine+1, 1, "no row after the header", "at least one order")
			}
			return nil
		case err != nil || row == nil:
			return err
		}
		if purchase, ok := p.purchase(row); ok {
			p.purchases = append(p.purchases, purchase)
		}
	}
}

// read reads a row. At a fault of the CSV syntax it gives neither row nor
// error: where the next row begins is not known then.
func (p *parser) read() ([]string, error) {
	row, err := p.csv.Read()
	if syntax := (*csv.ParseError)(nil); errors.As(err, &syntax) {
		found := "a quote inside a field that does not begin with one"
		if errors.Is(syntax.Err, csv.ErrQuote) {
			found = "a quoted field that does not end, or goes on after its quote"
		}
		p.fault(syntax.Line, syntax.Column, found, `a field that is quoted whole, its own quotes doubled`)
		return nil, nil
	}
	return row, err
}

func (p *parser) isHeader(row []string) bool {
	if slices.Equal(row, header) {
		return true
	}
	at := 0
	for at < len(row)-1 && at < len(header) && row[at] == header[at] {
		at++
	}
	p.faultAt(at, quote(strings.Join(row, ",")), "the header "+strings.Join(header, ","))
	return false
}

// purchase reads one row, and notes its first fault.
func (p *parser) purchase(row []string) (purchase, bool) {
	if len(row) != len(header) {
		at := min(len(row), len(header)+1) - 1
		return p.faultAt(at, count(len(row), "field"), "3: "+strings.Join(header, ","))
	}
	orderNo, createdAt, paidAt := row[0], row[1], row[2]
	switch {
	case orderNo == "":
		return p.faultAt(0, "an empty order_no", "1 to 256 bytes")
	case len(orderNo) > maxOrderNo:
		return p.faultAt(0, fmt.Sprintf("an order_no of %d bytes", len(orderNo)), "1 to 256 bytes")
	case !utf8.ValidString(orderNo) || strings.ContainsRune(orderNo, 0):
		return p.faultAt(0, "order_no "+quote(orderNo), "UTF-8 without a NUL")
	}
	if first, again := p.firstLine[orderNo]; again {
		return p.faultAt(0, fmt.Sprintf("order_no %s again, first on line %d", quote(orderNo), first), "each order once")
	}
	p.firstLine[orderNo], _ = p.csv.FieldPos(0)

	created, ok := parseTime(createdAt)
	if !ok {
		return p.faultAt(1, "created_at "+quote(createdAt), timeForm)
	}
	if paidAt == "" {
		return purchase{orderNo: orderNo}, true
	}
	paid, ok := parseTime(paidAt)
	if !ok {
		return p.faultAt(2, "paid_at "+quote(paidAt), timeForm+", or nothing for never")
	}
	if paid.Before(created) {
		return p.faultAt(2, "paid_at "+paidAt, "created_at, "+createdAt+", or later")
	}
	return purchase{orderNo: orderNo, pays: true, payAfter: paid.Sub(created)}, true
}

// rfc3339 is what RFC 3339 allows; time.Parse also takes an hour of one digit
// and a comma before the fraction.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

func parseTime(s string) (t time.Time, ok bool) {
	t, err := time.Parse(time.RFC3339, s)
	return t, err == nil && rfc3339.MatchString(s)
}

// faultAt notes a fault of a field of the row read last.
func (p *parser) faultAt(field int, found, expected string) (purchase, bool) {
	line, column := p.csv.FieldPos(field)
	p.fault(line, column, found, expected)
	return purchase{}, false
}

func (p *parser) fault(line, column int, found, expected string) {
	p.faults = append(p.faults, fmt.Sprintf("%s:%d:%d: found %s, expected %s", p.name, line, column, found, expected))
}

// quote quotes a text from the file, cut where it is too long to read.
func quote(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q and so on", strings.ToValidUTF8(s[:most], ""))
}

// count is a number with its noun: 1 field, 2 fields.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
