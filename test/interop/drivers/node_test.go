// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	driverName = "gpu.example.com"
	patience   = 60 * time.Second // For what takes none: machines are busy.
	pods       = 20               // For which there are claims.
)

// waitFor waits until `condition` is true. Other processes are looked at, so
// there is nothing to wait on.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("has not come: %s", what)
		}
	}
}

// program is a process in the background, and what it printed.
type program struct {
	log     string
	command *exec.Cmd
	ended   chan struct{}
}

func start(t *testing.T, log, path string, arguments ...string) *program {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	command := exec.Command(path, arguments...)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{log, command, make(chan struct{})}
	go func() {
		_ = command.Wait() // How it ends is its own business.
		close(p.ended)
	}()
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	return p
}

func (p *program) signal(how syscall.Signal) { _ = p.command.Process.Signal(how) }

// end returns when it is gone.
func (p *program) end(how syscall.Signal) {
	p.signal(how)
	<-p.ended
}

func (p *program) lines() []string {
	text, _ := os.ReadFile(p.log)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// said counts the lines that begin so.
func (p *program) said(beginning string) int {
	count := 0
	for _, line := range p.lines() {
		if strings.HasPrefix(line, beginning) {
			count++
		}
	}
	return count
}

// node is a root folder with devmgrd on it.
type node struct {
	t      *testing.T
	root   string
	daemon *program
}

func tool(name string) string {
	return filepath.Join(os.Getenv("DEVMGR_TOOLS"), name, name)
}

func newNode(t *testing.T) *node {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "devmgr-") // Sockets have short paths.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	n := &node{t: t, root: root}
	t.Cleanup(n.tell)
	for _, folder := range []string{"manifests", "orders"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var claims string
	for i := range pods {
		claims += claimOf(i)
	}
	n.write("claims.yaml", claims)
	n.startDaemon()
	return n
}

// tell shows what was printed when something went wrong.
func (n *node) tell() {
	if !n.t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(n.root, "*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		n.t.Logf("%s:\n%s", filepath.Base(log), text)
	}
}

func (n *node) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.root, name)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) remove(name string) {
	n.t.Helper()
	if err := os.Remove(filepath.Join(n.root, name)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) order(name, text string) { n.t.Helper(); n.write("orders/"+name, text) }
func (n *node) withdraw(name string)    { n.t.Helper(); n.remove("orders/" + name) }

func (n *node) startDaemon() {
	n.t.Helper()
	n.daemon = start(n.t, n.root+"/devmgrd.log", tool("devmgrd"), "--root", n.root)
	waitFor(n.t, "devmgrd", func() bool { return n.ctl("status").err == nil })
}

func (n *node) restartDaemon(how syscall.Signal) {
	n.t.Helper()
	n.daemon.end(how)
	n.startDaemon()
}

// startDriver returns when the driver is connected as instance `instance`, of
// which `others` are there besides.
func (n *node) startDriver(instance string, others int, flags ...string) *program {
	n.t.Helper()
	name := "driver"
	if instance != "" {
		name += "-" + instance
		flags = append(flags, "--instance", instance)
	}
	flags = append(flags, "--name", driverName, "--root", n.root,
		"--manifest", n.root+"/claims.yaml", "--orders", n.root+"/orders")
	p := start(n.t, n.root+"/"+name+".log", os.Getenv("DEVMGR_INTEROP_BIN")+"/driver", flags...)
	n.waitForDrivers(others + 1)
	return p
}

func (n *node) waitForDrivers(count int) {
	n.t.Helper()
	waitFor(n.t, fmt.Sprintf("%d instances that are connected", count),
		func() bool { return n.connected() == count })
}

type result struct {
	out string
	err error
}

// ctl runs devmgrctl.
func (n *node) ctl(arguments ...string) result {
	command := exec.Command(tool("devmgrctl"), append([]string{"--endpoint", n.root + "/devmgr.sock"}, arguments...)...)
	var errors strings.Builder
	command.Stderr = &errors
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("devmgrctl %s: %w: %s", strings.Join(arguments, " "), err, errors.String())
	}
	return result{string(out), err}
}

type item struct {
	Metadata struct{ Name string }
	Status   json.RawMessage
}

// get lists objects; none while they cannot be had.
func (n *node) get(what string) []item {
	var list struct{ Items []item }
	if done := n.ctl("get", what, "-o", "json"); done.err == nil {
		if err := json.Unmarshal([]byte(done.out), &list); err != nil {
			n.t.Fatal(err)
		}
	}
	return list.Items
}

func (n *node) connected() int {
	count := 0
	for _, plugin := range n.get("plugins") {
		var status struct{ State string }
		if err := json.Unmarshal(plugin.Status, &status); err != nil {
			n.t.Fatal(err)
		}
		if plugin.Metadata.Name == driverName && status.State == "Connected" {
			count++
		}
	}
	return count
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

func claimOf(i int) string {
	return fmt.Sprintf(`---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim-%[1]d, namespace: default, uid: uid-of-claim-%[1]d}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}}
status:
  allocation: {devices: {results: [{request: gpu, driver: %[2]s, pool: node-1, device: gpu-%[1]d}]}}
  reservedFor: [{resource: pods, name: pod-%[1]d, uid: uid-of-pod-%[1]d}]
`, i, driverName)
}

// add puts a pod with a claim there.
func (n *node) add(i int) {
	n.t.Helper()
	n.write(fmt.Sprintf("manifests/pod-%d.yaml", i), claimOf(i)+fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: pod-%[1]d, namespace: default, uid: uid-of-pod-%[1]d}
spec:
  containers: [{name: main, image: busybox, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: claim-%[1]d}]
`, i))
}

func (n *node) removePod(i int) { n.t.Helper(); n.remove(fmt.Sprintf("manifests/pod-%d.yaml", i)) }

func (n *node) wait(i int, state string) {
	n.t.Helper()
	if done := n.ctl("wait", "pod", podName(i), "--for="+state, "--timeout", "60s"); done.err != nil {
		n.t.Fatal(done.err)
	}
}

// run adds a pod and checks what its container gets.
func (n *node) run(i int) {
	n.t.Helper()
	n.add(i)
	n.wait(i, "ready")
	n.checkDevices(i)
}

func (n *node) checkDevices(i int) {
	n.t.Helper()
	done := n.ctl("resolve", podName(i), "-o", "name")
	want := fmt.Sprintf("%s/claim=uid-of-claim-%d-gpu-%d\n", driverName, i, i)
	if done.err != nil || done.out != want {
		n.t.Fatalf("pod %d gets %q (%v), want %q", i, done.out, done.err, want)
	}
}

// release removes a pod and waits until all of it is gone.
func (n *node) release(i int) {
	n.t.Helper()
	n.removePod(i)
	n.wait(i, "released")
}

// waitForError waits until the pod shows a text.
func (n *node) waitForError(i int, text string) {
	n.t.Helper()
	waitFor(n.t, text, func() bool { return strings.Contains(n.ctl("describe", "pod", podName(i)).out, text) })
}

func about(word string, i int) string {
	return fmt.Sprintf("%s default/claim-%d ", word, i)
}
