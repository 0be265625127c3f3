// SPDX-License-Identifier: Apache-2.0

// Package drivers has devmgrd serve drivers that are built on the official
// helper, while either of them is restarted, killed and updated. Where its
// programs are is told by DEVMGR_TOOLS and DEVMGR_INTEROP_BIN.
package drivers

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, each := range []struct{ api, served string }{
		{"v1", "v1"}, {"v1beta1", "v1beta1"}, {"v1,v1beta1", "v1"},
	} {
		t.Run("a driver of "+each.api, func(t *testing.T) {
			n := newNode(t)
			driver := n.startDriver("", 0, "--api", each.api)
			n.run(0)
			n.release(0)
			service := " /k8s.io.kubelet.pkg.apis.dra." + each.served + ".DRAPlugin"
			// One prepare without a claim asks whether the driver answers.
			for method, want := range map[string]int{"NodePrepareResources": 2, "NodeUnprepareResources": 1} {
				if count := driver.said("call " + method + service); count != want {
					t.Errorf("%d calls of %s by%s", count, method, service)
				}
				if all := driver.said("call " + method); all != want {
					t.Errorf("%d calls of %s in all", all, method)
				}
			}
			if prepared := driver.said("preparing "); prepared != 1 {
				t.Errorf("%d claims were prepared", prepared)
			}
		})
	}
}

// Instances are named so that the older one is found last after a restart.
func TestRollingUpdate(t *testing.T) {
	n := newNode(t)
	older := n.startDriver("z", 0)
	n.run(0)
	newer := n.startDriver("a", 1)
	prepares := func(t *testing.T, driver *program, i int) {
		t.Helper()
		n.run(i)
		if driver.said(about("prepared", i)) != 1 {
			t.Errorf("another instance has prepared for pod %d", i)
		}
	}
	t.Run("the newer instance takes over", func(t *testing.T) { prepares(t, newer, 1) })
	for i, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(fmt.Sprintf("and stays it when devmgrd ends by %v", how), func(t *testing.T) {
			n.restartDaemon(how)
			n.waitForDrivers(2)
			n.checkDevices(0)
			prepares(t, newer, 2+i)
		})
	}
	t.Run("it unprepares what the older one prepared", func(t *testing.T) {
		n.release(0)
		if newer.said(about("unprepared", 0)) != 1 {
			t.Error("the older instance has unprepared")
		}
	})
	t.Run("the older one serves when the newer is killed", func(t *testing.T) {
		newer.end(syscall.SIGKILL)
		n.waitForDrivers(1)
		prepares(t, older, 4)
	})
	t.Run("the newer one comes back", func(t *testing.T) {
		newer = n.startDriver("a", 1)
		prepares(t, newer, 5)
	})
	t.Run("the older one leaves", func(t *testing.T) {
		older.end(syscall.SIGTERM)
		n.waitForDrivers(1)
		prepares(t, newer, 6)
		for i := 1; i <= 6; i++ {
			n.release(i)
		}
	})
}

func TestUpdateUnderLoad(t *testing.T) {
	t.Run("pods come and go while instances do", func(t *testing.T) {
		n := newNode(t)
		driver := n.startDriver("0", 0)
		for i := range pods {
			n.add(i)
			if i%5 == 4 {
				next := n.startDriver(fmt.Sprint(i), 1)
				driver.end(syscall.SIGTERM)
				driver = next
			}
		}
		for i := range pods {
			n.wait(i, "ready")
			n.checkDevices(i)
		}
		for i := range pods {
			n.removePod(i)
		}
		for i := range pods {
			n.wait(i, "released")
		}
		if debts := n.get("debts"); len(debts) != 0 {
			t.Errorf("%d debts are left", len(debts))
		}
	})
}

// The helper at hand knows v1alpha1 of the health service; v1 is newer.
func TestHealth(t *testing.T) {
	n := newNode(t)
	older := n.startDriver("z", 0, "--health")
	n.run(0)
	shows := func(t *testing.T, health string) {
		t.Helper()
		waitFor(t, health, func() bool {
			for _, pod := range n.get("pods") {
				if strings.Contains(string(pod.Status), fmt.Sprintf(`"health":%q`, health)) ||
					strings.Contains(string(pod.Status), fmt.Sprintf(`"health": %q`, health)) {
					return true
				}
			}
			return false
		})
	}
	t.Run("is told", func(t *testing.T) { shows(t, "Healthy") })
	t.Run("changes", func(t *testing.T) {
		n.order("health", "Unhealthy")
		shows(t, "Unhealthy")
	})
	var newer *program
	t.Run("is the newer instance's to tell", func(t *testing.T) {
		newer = n.startDriver("a", 1, "--health")
		waitFor(t, "the stream of the newer", func() bool { return newer.said("watched") == 1 })
		waitFor(t, "the end of the older one's", func() bool { return older.said("watched no more") == 1 })
		n.order("health", "Healthy")
		shows(t, "Healthy")
	})
	t.Run("is unknown without a driver", func(t *testing.T) {
		older.end(syscall.SIGTERM)
		newer.end(syscall.SIGKILL)
		shows(t, "Unknown")
	})
	t.Run("is told again", func(t *testing.T) {
		n.startDriver("a", 0, "--health")
		shows(t, "Healthy")
	})
}

// Whoever is restarted in the middle of a call, it ends well.
func TestRestarts(t *testing.T) {
	for _, call := range []string{"prepare", "unprepare"} {
		for _, who := range []string{"driver", "devmgrd"} {
			for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				t.Run(fmt.Sprintf("%s ends by %v while a driver is to %s", who, how, call), func(t *testing.T) {
					n := newNode(t)
					driver := n.startDriver("", 0)
					restart(t, n, driver, call, who, how)
				})
			}
		}
	}
}

func restart(t *testing.T, n *node, driver *program, call, who string, how syscall.Signal) {
	begun, ended, state := about("preparing", 0), about("prepared", 0), "ready"
	if call == "unprepare" {
		begun, ended, state = "un"+begun, "un"+ended, "released"
		n.run(0)
	}
	n.order(call+"-hang", "")
	if call == "prepare" {
		n.add(0)
	} else {
		n.removePod(0)
	}
	waitFor(t, "the call", func() bool { return driver.said(begun) == 1 })
	if who == "driver" {
		driver.signal(how)
		if how == syscall.SIGTERM {
			n.withdraw(call + "-hang") // It ends with its calls.
		}
		<-driver.ended
		if how == syscall.SIGKILL {
			n.withdraw(call + "-hang")
		}
		driver = n.startDriver("", 0)
	} else {
		n.daemon.end(how)
		n.withdraw(call + "-hang")
		n.startDaemon()
	}
	n.wait(0, state)
	// A driver that is terminated may still answer.
	mayAnswer := who == "driver" && how == syscall.SIGTERM
	if driver.said(ended) < 1 || (driver.said(begun) < 2 && !mayAnswer) {
		t.Errorf("the driver was not asked again:\n%s", strings.Join(driver.lines(), "\n"))
	}
	if call == "prepare" {
		n.checkDevices(0)
		n.release(0)
	}
}

func TestFailures(t *testing.T) {
	for _, order := range []string{"prepare-fail", "prepare-fail-claim"} {
		t.Run(order, func(t *testing.T) {
			n := newNode(t)
			n.startDriver("", 0)
			n.order(order, "no power for it")
			n.add(0)
			n.waitForError(0, "no power for it")
			n.withdraw(order)
			n.wait(0, "ready")
			n.checkDevices(0)
			n.release(0)
		})
	}
	for _, order := range []string{"unprepare-fail", "unprepare-fail-claim"} {
		t.Run(order, func(t *testing.T) {
			n := newNode(t)
			driver := n.startDriver("", 0)
			n.run(0)
			n.order(order, "still in use")
			n.removePod(0)
			waitFor(t, "the debt", func() bool {
				debts := n.get("debts")
				return len(debts) == 1 && strings.Contains(string(debts[0].Status), "still in use")
			})
			n.withdraw(order)
			n.wait(0, "released")
			if driver.said(about("unprepared", 0)) != 1 || len(n.get("debts")) != 0 {
				t.Error("the debt is not settled")
			}
		})
	}
	t.Run("a claim that the API server does not have", func(t *testing.T) {
		n := newNode(t)
		n.write("claims.yaml", claimOf(1))
		n.startDriver("", 0)
		n.add(0)
		n.waitForError(0, "not found")
		n.run(1) // Nobody else suffers.
		n.release(0)
	})
}
