package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/remuda-ci/remuda/internal/cost"
)

// soon is a wait that users accept: that of hosts which only had to register.
const soon = 5 * time.Second

// at24 is the look at a time of the day, which begins at four in the morning.
func (d *workday) at24(hour, minute int) dayLook { return d.looks[(hour+20)%24*60+minute] }

func (d *workday) spent() time.Duration { return d.looks[len(d.looks)-1].spent }

func (d *workday) dollars(p cost.Prices) float64 { return d.spent().Hours() * p.Machine }

// most are the machines at once.
func (d *workday) most() int {
	return slices.MaxFunc(d.looks, func(a, b dayLook) int { return a.up - b.up }).up
}

// within are the runs that had all their hosts after so long.
func (d *workday) within(most time.Duration) int {
	n := 0
	for _, w := range d.waits {
		if w <= most {
			n++
		}
	}
	return n
}

// waited is how long so many of a hundred runs waited at most.
func (d *workday) waited(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(d.waits))
	return sorted[(len(sorted)*percent+99)/100-1].Round(100 * time.Millisecond)
}

// tellDay is the day in numbers, for the page.
func tellDay(with, without *workday, prices cost.Prices) string {
	var b strings.Builder
	row := func(what string, of func(d *workday) string) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", what, of(with), of(without))
	}
	fmt.Fprintf(&b, "| %d runs of %d jobs | with the pool | without any |\n|---|---|---|\n", len(with.waits), dayJobs)
	row(fmt.Sprintf("had all their hosts within %s", soon), func(d *workday) string {
		return fmt.Sprintf("%.0f %%", 100*float64(d.within(soon))/float64(len(d.waits)))
	})
	row("half of them waited at most", func(d *workday) string { return d.waited(50).String() })
	row("95 of a hundred waited at most", func(d *workday) string { return d.waited(95).String() })
	row("hosts launched", func(d *workday) string { return fmt.Sprint(d.launched) })
	row("hosts that a run found ready", func(d *workday) string { return fmt.Sprint(d.reused) })
	row("hosts that scale-down ended, idle before their run was over", func(d *workday) string { return fmt.Sprint(d.scaled) })
	row("most machines at once", func(d *workday) string { return fmt.Sprint(d.most()) })
	row("hours in which a job ran on a host", func(d *workday) string { return fmt.Sprintf("%.0f", d.worked.Hours()) })
	row("machine-hours", func(d *workday) string { return fmt.Sprintf("%.0f", d.spent().Hours()) })
	row(fmt.Sprintf("at $%.4f an hour (%s)", prices.Machine, prices.MachineType), func(d *workday) string {
		return fmt.Sprintf("$%.2f", d.dollars(prices))
	})
	return b.String()
}
