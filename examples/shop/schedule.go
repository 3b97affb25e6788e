package main

import "time"

// timeOfDay is a local time, hours and minutes.
type timeOfDay struct{ hour, minute int }

func parseTimeOfDay(text string) (timeOfDay, error) {
	t, err := time.Parse("15:04", text)
	return timeOfDay{t.Hour(), t.Minute()}, err
}

// after is the first such time of day after now.
func (d timeOfDay) after(now time.Time) time.Time {
	next := func(days int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, d.hour, d.minute, 0, 0, now.Location())
	}
	if today := next(0); today.After(now) {
		return today
	}
	return next(1)
}
