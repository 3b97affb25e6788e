package faultproxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

const testLimit = 200

// ends are where the values of data end, and the error that stops them. data
// is fed in the pieces that the cuts make of it.
func ends(data []byte, requests bool, cuts ...int) (list []int, err error) {
	s := scanner{requests: requests, limit: testLimit}
	at := 0
	for _, cut := range append(cuts, len(data)) {
		for at < cut {
			n, whole, err := s.scan(data[at:cut])
			at += n
			switch {
			case err != nil:
				return append(list, at), err
			case whole:
				list = append(list, at)
			case at != cut:
				panic("bytes were left")
			}
		}
	}
	return list, nil
}

func TestTheEndOfAValueIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		requests bool
		data     string // a value ends at each |, which is no part of it
	}{
		{false, "+OK\r\n|-ERR no\r\n|:7\r\n|+\r\n|"},
		{false, "$5\r\nhello\r\n|$0\r\n\r\n|$-1\r\n|$4\r\n\r\n\r\n\r\n|"},
		{false, "*0\r\n|*-1\r\n|*2\r\n+a\r\n$1\r\nb\r\n|*1\r\n*1\r\n*1\r\n*0\r\n|"},
		{false, "*3\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n|"},
		{false, "_\r\n|,1.5\r\n|#t\r\n|(123456789012345678901234567890\r\n|!5\r\nERR x\r\n|=6\r\ntxt:hi\r\n|"},
		{false, "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n|~2\r\n+a\r\n+b\r\n|>2\r\n+invalidate\r\n*1\r\n+k\r\n|%0\r\n|"},
		{false, "|1\r\n+ttl\r\n:5\r\n*1\r\n|1\r\n+a\r\n:1\r\n+b\r\n@+next\r\n@"}, // @ for |, which stands in it
		{false, "+not yet"},
		{true, "*1\r\n$4\r\nPING\r\n|*2\r\n$3\r\nGET\r\n$0\r\n\r\n|*0\r\n|*-1\r\n|"},
		{true, "PING\r\n|\r\n|get k\n|\n|$5\r\n|"},
		{true, "*2\r\n$3\r\nGET\r\n$3\r\nk\r\n"},
	} {
		mark := "|"
		if strings.Contains(c.data, "@") {
			mark = "@"
		}
		var want []int
		data := ""
		parts := strings.Split(c.data, mark)
		for i, part := range parts {
			data += part
			if i < len(parts)-1 {
				want = append(want, len(data))
			}
		}
		got, err := ends([]byte(data), c.requests)
		require.NoError(t, err, "%q", data)
		require.Equal(t, want, got, "%q", data)
	}
}

func TestWhatIsNoRESPIsAnError(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("*1\r\n", maxDepth)
	for _, c := range []struct {
		requests bool
		data     string
		says     string
	}{
		{false, "PING\r\n", "no RESP type"},
		{false, "\r\n", "is no RESP"},
		{false, "\n", "is no RESP"},
		{false, "+OK\n", "is no RESP"},
		{false, "$x\r\n", "is no count"},
		{false, "$\r\n", "is no count"},
		{false, "$-2\r\n", "is no count"},
		{false, "$+1\r\n", "is no count"},
		{false, "*?\r\n", "is no count"},
		{false, "%-1\r\n", "is no count"},
		{false, "$99999999999999999999\r\n", "is no count"},
		{false, "$2\r\nabc\r\n", "and not in CRLF"},
		{false, "$1\r\na\n\n", "and not in CRLF"},
		{false, "$199\r\n", "not more than 200"},
		{false, "*67\r\n", "67 values in it"},
		{false, "%34\r\n", "68 values in it"},
		{false, "*1\r\n>1\r\n+a\r\n", "push stands within"},
		{false, "+" + strings.Repeat("a", testLimit), "more than 200 bytes"},
		{false, "*3\r\n$90\r\n" + strings.Repeat("a", 90) + "\r\n$90\r\n" + strings.Repeat("a", 90) + "\r\n+a\r\n", "more than 200 bytes"},
		{true, "*1\r\n+PING\r\n", "not only bulk strings"},
		{true, "*1\r\n*1\r\n", "not only bulk strings"},
		{true, "*1\r\n$-1\r\n", "not only bulk strings"},
	} {
		_, err := ends([]byte(c.data), c.requests)
		require.ErrorContains(t, err, c.says, "%q", c.data)
	}

	s := scanner{limit: MaxMessage}
	_, _, err := s.scan([]byte(deep))
	require.NoError(t, err)
	_, _, err = s.scan([]byte("*1\r\n"))
	require.ErrorContains(t, err, "128 deep")
	_, _, again := s.scan([]byte("+OK\r\n"))
	require.Equal(t, err, again, "an error is for good")

	s = scanner{limit: MaxMessage, requests: true}
	_, _, err = s.scan(bytes.Repeat([]byte("a"), maxLine))
	require.ErrorContains(t, err, "no end within 65536 bytes")
}

// Random values, whose ends are known since they were just made.
func TestTheEndsOfRandomValuesAreFoundHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var data []byte
		var want []int
		for range 1 + rnd.IntN(4) {
			v := randomValue(rnd, 3)
			if len(v) > testLimit {
				continue
			}
			data = append(data, v...)
			want = append(want, len(data))
		}
		var cuts []int
		for at := range data {
			if rnd.IntN(5) == 0 {
				cuts = append(cuts, at)
			}
		}
		got, err := ends(data, false, cuts...)
		require.NoError(t, err, "%q", data)
		require.Equal(t, want, got, "%q cut at %v", data, cuts)
	}
}

func randomValue(rnd *rand.Rand, depth int) string {
	body := strings.Repeat("\r\n*1$"[rnd.IntN(4):], rnd.IntN(5))
	kinds := 8
	if depth > 0 {
		kinds = 12
	}
	switch k := rnd.IntN(kinds); k {
	case 0, 1, 2, 3:
		return fmt.Sprintf("%c%d\r\n", "+-:,"[k], rnd.IntN(1000))
	case 4, 5, 6:
		return fmt.Sprintf("%c%d\r\n%s\r\n", "$!="[k-4], len(body), body)
	case 7:
		return []string{"$-1\r\n", "*-1\r\n", "_\r\n", "*0\r\n"}[rnd.IntN(4)]
	default:
		n := rnd.IntN(4)
		v := fmt.Sprintf("%c%d\r\n", "*~%|"[k-8], n)
		values := [...]int{n, n, 2 * n, 2*n + 1}[k-8]
		for range values {
			v += randomValue(rnd, depth-1)
		}
		return v
	}
}

func TestAReaderReturnsWholeMessages(t *testing.T) {
	t.Parallel()
	large := "$100000\r\n" + strings.Repeat("x", 100_000) + "\r\n"
	list := []string{"+OK\r\n", large, "*2\r\n:1\r\n:2\r\n", large, "_\r\n"}
	for name, from := range map[string]io.Reader{
		"at once":        strings.NewReader(strings.Join(list, "")),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(strings.Join(list, ""))),
		"with the error": iotest.DataErrReader(strings.NewReader(strings.Join(list, ""))),
	} {
		r := newReader(from, false)
		for _, want := range list {
			got, err := r.next()
			require.NoError(t, err, name)
			require.Equal(t, want, string(got), name)
		}
		_, err := r.next()
		require.Equal(t, io.EOF, err, name)
	}
	_, err := newReader(strings.NewReader("$5\r\nhel"), false).next()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	_, err = newReader(strings.NewReader("nonsense\r\n"), false).next()
	require.ErrorIs(t, err, errMalformed)
}

func TestTheWordsOfARequest(t *testing.T) {
	t.Parallel()
	for request, want := range map[string][]string{
		"*1\r\n$4\r\nPING\r\n":                          {"PING"},
		"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n": {"SET", "", "\r\n$1"},
		"*0\r\n":            nil,
		"*-1\r\n":           nil,
		"\r\n":              nil,
		" get  k \r\n":      {"get", "k"},
		"PING\n":            {"PING"},
		"*1\r\n$1\r\n*\r\n": {"*"},
	} {
		require.ElementsMatch(t, want, words([]byte(request)), "%q", request)
	}
}
