//go:build !race

package sqlstore_test

const raced = false
