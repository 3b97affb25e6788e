package sqlstore

import "strings"

// repeated is part, n times, with commas between: the rows of a VALUES, or the list of an IN.
func repeated(part string, n int) string {
	return strings.TrimSuffix(strings.Repeat(part+", ", n), ", ")
}

// in is the list of an IN with n arguments.
func in(n int) string { return "(" + repeated("?", n) + ")" }

// anys is ids as the arguments of a statement, after those of before.
func anys(ids []string, before ...any) []any {
	for _, id := range ids {
		before = append(before, id)
	}
	return before
}
