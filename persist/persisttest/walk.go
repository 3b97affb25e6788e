package persisttest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// Seeds returns n seeds of random runs, 50 times as many where ORDERWHEEL_LONG=1, or
// the one that ORDERWHEEL_SEED names: a failed run is repeated by
//
//	ORDERWHEEL_SEED=42 go test -run 'Conformance' ./persist
func Seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	if s := os.Getenv("ORDERWHEEL_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "ORDERWHEEL_SEED")
		return []uint64{seed}
	}
	if os.Getenv("ORDERWHEEL_LONG") == "1" {
		n *= 50
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = rand.Uint64()
	}
	return list
}

// oddIDs are few, so that operations meet, and of every kind of bytes.
var oddIDs = []string{
	"a", "b", "-", "0", "order 17", "{a}b", "line\nbreak", "nul\x00nul", "nul\x00", "\xff\xfe", "Ä订单",
	strings.Repeat("x", persist.MaxIDLen), "tok - 1 c 2 3",
}

// walker makes random operations on the store and on the model, and compares every
// answer and all that is known of every id afterwards.
type walker struct {
	*bed
	rnd    *rand.Rand
	model  model
	ids    []string
	tokens []string
	nowMS  int64 // the store's clock before the step
}

func walk(t *testing.T, b *bed, seed uint64, steps int) {
	w := &walker{bed: b, rnd: rand.New(rand.NewPCG(seed, 0)), model: model{}, ids: b.near(oddIDs...), tokens: []string{"none"}}
	for n := range steps {
		w.pass(t, w.rnd.Int64N(3)*w.rnd.Int64N(3))
		w.nowMS = w.bed.nowMS(t)
		w.step(t, n)
		if n%4 == 0 {
			w.comparePages(t)
		}
	}
	w.requireOnePlace(t, w.ids...)
	w.drain(t)
}

// step makes one operation. The model has to answer the same and to know the same
// of every id at some instant at which the operation may have been judged: a clock that
// goes by itself does not say when that was.
func (w *walker) step(t *testing.T, n int) {
	o := w.operation()
	got, err := o.store()
	require.NoError(t, err, "step %d: %s", n, o.name)
	records := w.lookup(t, w.ids...)
	after := w.bed.nowMS(t)
	for nowMS := w.nowMS; ; nowMS++ {
		m := w.model.clone()
		want := o.model(m, nowMS)
		known := known(m, records)
		if fits := assert.ObjectsAreEqual(want, got) && assert.ObjectsAreEqual(known, records); !fits && nowMS < after {
			continue
		}
		require.Equal(t, want, got, "step %d: %s: the answer", n, o.name)
		require.Equal(t, known, records, "step %d: %s: what is left", n, o.name)
		w.model = m
		return
	}
}

// known is what the model knows of the ids of records. A reason of the store's own
// is taken as it is.
func known(m model, records []persist.Record) []persist.Record {
	list := make([]persist.Record, len(records))
	for i, r := range records {
		list[i] = m.lookup(r.ID)
		if list[i].Status == persist.StatusDead && list[i].Reason == "" && r.Reason != "" {
			list[i].Reason = r.Reason
		}
	}
	return list
}

// comparePages reads the due up to a random time, and the dead, in pages of a random size.
func (w *walker) comparePages(t *testing.T) {
	until, limit := w.dueMS(), 1+w.rnd.IntN(5)
	want := w.model.window(until)
	var got []persist.Due
	for page := (persist.Page{More: true}); page.More; {
		var err error
		page, err = w.Window(w.ctx, page.Next, until, limit)
		require.NoError(t, err)
		got = append(got, page.Due...)
		require.Equal(t, len(got) < len(want), page.More)
	}
	require.Equal(t, want, got)

	dead := w.model.dead()
	var read []string
	for page := (persist.DeadPage{More: true}); page.More; {
		var err error
		page, err = w.Dead(w.ctx, page.Next, limit)
		require.NoError(t, err)
		for _, d := range page.Dead {
			read = append(read, d.ID)
		}
		require.Equal(t, len(read) < len(dead), page.More)
	}
	require.Equal(t, dead, read)
}

// drain ends everything: from every state there is a way out.
func (w *walker) drain(t *testing.T) {
	w.cancel(t, w.ids...)
	for _, id := range w.ids {
		if e := w.model[id]; e.Status == persist.StatusRunning {
			require.Equal(t, persist.Settled, w.ack(t, e.token, id)[0].State)
		}
	}
	w.discard(t, w.ids...)
	w.requireEmpty(t)
	for _, r := range w.lookup(t, w.ids...) {
		require.Equal(t, persist.Record{ID: r.ID}, r)
	}
}
