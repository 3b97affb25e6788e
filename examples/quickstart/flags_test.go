package main

import (
	"flag"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFlagsHaveDefaults(t *testing.T) {
	t.Parallel()
	o, err := parseFlags(nil)
	require.NoError(t, err)
	require.Equal(t, options{timeout: 30 * time.Minute, speed: 900, spread: 3 * time.Second, seed: 1}, o)
	require.Equal(t, 2*time.Second, o.timeToPay())
}

func TestFlagsAreRead(t *testing.T) {
	t.Parallel()
	o, err := parseFlags([]string{"-orders", "o.csv", "-redis", ":6379", "-timeout", "1h", "-speed", "0.5", "-spread", "0", "-seed", "7",
		"-db", "d", "-json"})
	require.NoError(t, err)
	require.Equal(t, ":6379", o.redis.Addr)
	o.redis = nil
	require.Equal(t, options{orders: "o.csv", timeout: time.Hour, speed: 0.5, seed: 7, db: "d", json: true}, o)
	require.Equal(t, 2*time.Hour, o.timeToPay())
}

func TestARedisURLIsRead(t *testing.T) {
	t.Parallel()
	o, err := parseFlags([]string{"-redis", "redis://user:secret@example.com:7000/3"})
	require.NoError(t, err)
	require.Equal(t, "example.com:7000", o.redis.Addr)
	require.Equal(t, "secret", o.redis.Password)
	require.Equal(t, 3, o.redis.DB)
}

func TestBadFlagsAreRefusedInOneLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`found the argument "orders.csv", expected flags only`:        {"orders.csv"},
		`flag provided but not defined: -fast`:                        {"-fast"},
		`flag needs an argument: -speed`:                              {"-speed"},
		`-timeout is 0s, expected more than 0`:                        {"-timeout", "0"},
		`-timeout is -1s, expected more than 0`:                       {"-timeout", "-1s"},
		`-speed is 0, expected a number greater than 0`:               {"-speed", "0"},
		`-speed is -2, expected a number greater than 0`:              {"-speed", "-2"},
		`-speed is NaN, expected a number greater than 0`:             {"-speed", "NaN"},
		`-speed is +Inf, expected a number greater than 0`:            {"-speed", "Inf"},
		`-spread is -1s, expected 0 or more`:                          {"-spread", "-1s"},
		`-timeout 30m0s at -speed 1e+09 is less than 1ms to pay`:      {"-speed", "1e9"},
		`-timeout 30m0s at -speed 1e-09 is more than 10 years to pay`: {"-speed", "1e-9"},
		`-redis is "localhost", expected host:port or a redis:// URL`: {"-redis", "localhost"},
		`-redis is no redis:// URL: redis: invalid URL scheme: http`:  {"-redis", "http://localhost:1"},
		`-redis is no redis:// URL: invalid port ":x" after host`:     {"-redis", "redis://user:secret@host:x"},
		`invalid value "soon" for flag -timeout: parse error`:         {"-timeout", "soon"},
		`invalid value "-1" for flag -seed: parse error`:              {"-seed", "-1"},
		`invalid value "1e999" for flag -speed: value out of range`:   {"-speed", "1e999"},
		`invalid boolean value "maybe" for -json: parse error`:        {"-json=maybe"},
		`invalid value "10" for flag -spread: parse error`:            {"-spread", "10"},
	} {
		_, err := parseFlags(args)
		require.EqualError(t, err, want)
	}
	_, err := parseFlags([]string{"-h"})
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestATimeIsScaledAndNeverOverflows(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2*time.Second, scale(30*time.Minute, 900))
	require.Equal(t, 4*time.Second, scale(time.Second, 0.25))
	require.Equal(t, time.Duration(0), scale(0, 1e-300))
	require.Equal(t, time.Duration(math.MaxInt64), scale(time.Second, 1e-300))
}
