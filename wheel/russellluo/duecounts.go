package russellluo

// grain is the width of one count: 1<<grain milliseconds.
const grain = 10

// dueCounts knows the earliest of many due times to within one grain, for the
// price of a small map: it counts the due times of each grain.
type dueCounts struct {
	count map[int64]int // grain number -> how many; never 0
	first int64         // no grain below it is in count
}

func newDueCounts() dueCounts {
	return dueCounts{count: make(map[int64]int)}
}

func (c *dueCounts) add(dueMS int64) {
	g := dueMS >> grain
	if len(c.count) == 0 || g < c.first {
		c.first = g
	}
	c.count[g]++
}

func (c *dueCounts) remove(dueMS int64) {
	g := dueMS >> grain
	if c.count[g]--; c.count[g] == 0 {
		delete(c.count, g)
	}
}

// min returns a lower bound, at most one grain below the earliest due time. It
// looks at every grain only when the first one has run empty.
func (c *dueCounts) min() (dueMS int64, ok bool) {
	if len(c.count) == 0 {
		return 0, false
	}
	if c.count[c.first] == 0 {
		first := true
		for g := range c.count {
			if first || g < c.first {
				c.first, first = g, false
			}
		}
	}
	return c.first << grain, true
}
