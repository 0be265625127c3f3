// SPDX-License-Identifier: Apache-2.0
//
// The kubelet's own code on both sides of a migration, for checkpoint_test.py.
//
//	checkpoint write -seed N DIR   writes checkpoint files as the kubelet does
//	checkpoint read DIR            reads them, and prints what they hold
//
// The files are those of pkg/kubelet/cm/devicemanager/checkpoint and of
// pkg/kubelet/cm/dra/state, in a directory laid out as the kubelet's root.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"

	"google.golang.org/protobuf/proto"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra/state"
)

const (
	devicesFile = "kubelet_internal_checkpoint"
	claimsFile  = "dra_manager_state"
)

// Container is what a container holds of one resource.
type Container struct {
	Pod       string              `json:"pod"`
	Container string              `json:"container"`
	Resource  string              `json:"resource"`
	Devices   map[string][]string `json:"devices"` // By NUMA node.
	Response  []byte              `json:"response"`
}

// Files are what both files hold.
type Files struct {
	Containers []Container            `json:"containers"`
	Resources  []string               `json:"resources"`
	Claims     []state.ClaimInfoState `json:"claims"`
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pods(r *rand.Rand) []string {
	var uids []string
	for range 1 + r.IntN(12) {
		uids = append(uids, fmt.Sprintf("%08x-0000-4000-8000-%012x", r.Uint32(), r.Uint64N(1<<48)))
	}
	return uids
}

// response is what a device plugin might answer.
func response(r *rand.Rand, ids []string) []byte {
	answer := &pluginapi.ContainerAllocateResponse{}
	if r.IntN(5) == 0 {
		return must(proto.Marshal(answer))
	}
	answer.Envs = map[string]string{"DEVICES": fmt.Sprint(ids), "AMP": "<&>\u2028"}
	for _, id := range ids {
		answer.Devices = append(answer.Devices, &pluginapi.DeviceSpec{
			ContainerPath: "/dev/" + id, HostPath: "/dev/host/" + id, Permissions: "rw"})
		answer.CdiDevices = append(answer.CdiDevices, &pluginapi.CDIDevice{Name: "vendor.com/gpu=" + id})
	}
	answer.Mounts = append(answer.Mounts, &pluginapi.Mount{ContainerPath: "/lib/x", HostPath: "/opt/x", ReadOnly: true})
	return must(proto.Marshal(answer))
}

func devices(r *rand.Rand, uids []string) checkpoint.DeviceManagerCheckpoint {
	var entries []checkpoint.PodDevicesEntry
	registered := map[string][]string{"example.com/idle": {}}
	next := 0
	for _, uid := range uids {
		for container := range r.IntN(4) {
			resource := []string{"example.com/gpu", "example.com/nic"}[r.IntN(2)]
			perNode := checkpoint.NewDevicesPerNUMA()
			var ids []string
			for range 1 + r.IntN(4) {
				id := fmt.Sprintf("dev-%d", next)
				next++
				ids = append(ids, id)
				node := int64(r.IntN(4)) - 1
				perNode[node] = append(perNode[node], id)
				if node >= 0 && r.IntN(4) == 0 {
					perNode[node+10] = append(perNode[node+10], id)
				}
			}
			entries = append(entries, checkpoint.PodDevicesEntry{
				PodUID: uid, ContainerName: fmt.Sprintf("c%d", container), ResourceName: resource,
				DeviceIDs: perNode, AllocResp: response(r, ids)})
			registered[resource] = append(registered[resource], ids...)
		}
	}
	return checkpoint.New(entries, registered)
}

func claims(r *rand.Rand, uids []string) state.ClaimInfoStateList {
	list := state.ClaimInfoStateList{}
	for i := range r.IntN(8) {
		claim := state.ClaimInfoState{
			ClaimUID: types.UID(fmt.Sprintf("claim-%d", i)), ClaimName: fmt.Sprintf("c%d", i), Namespace: "default",
			PodUIDs: sets.New[string](), DriverState: map[string]state.DriverState{}}
		for range 1 + r.IntN(2) {
			claim.PodUIDs.Insert(uids[r.IntN(len(uids))])
		}
		for driver := range 1 + r.IntN(2) {
			var prepared state.DriverState
			for device := range r.IntN(3) {
				d := state.Device{PoolName: "pool", DeviceName: fmt.Sprintf("d%d-%d", i, device),
					CDIDeviceIDs: []string{fmt.Sprintf("vendor.com/gpu=<%d>", device)}}
				if r.IntN(2) == 0 {
					d.RequestNames = []string{"r0", "r1/sub"}
				}
				if r.IntN(3) == 0 {
					share := types.UID("share-1")
					d.ShareID = &share
				}
				prepared.Devices = append(prepared.Devices, d)
			}
			if r.IntN(4) == 0 {
				prepared.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
			}
			claim.DriverState[fmt.Sprintf("driver-%d.example.com", driver)] = prepared
		}
		list = append(list, claim)
	}
	return list
}

func write(dir string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	uids := pods(r)
	manager := must(checkpointmanager.NewCheckpointManager(filepath.Join(dir, "device-plugins")))
	check(manager.CreateCheckpoint(devicesFile, devices(r, uids)))
	checkpointer := must(state.NewCheckpointer(dir, claimsFile))
	check(checkpointer.Store(must(state.NewCheckpoint(claims(r, uids)))))
}

// read is as a kubelet at its start: a file that it does not accept is an error.
func read(dir string) Files {
	files := Files{Containers: []Container{}, Resources: []string{}, Claims: []state.ClaimInfoState{}}
	manager := must(checkpointmanager.NewCheckpointManager(filepath.Join(dir, "device-plugins")))
	held := checkpoint.New(nil, nil)
	check(manager.GetCheckpoint(devicesFile, held))
	entries, registered := held.GetData()
	for _, entry := range entries {
		// What the kubelet's device manager makes of it.
		answer := &pluginapi.ContainerAllocateResponse{}
		check(proto.Unmarshal(entry.AllocResp, answer))
		container := Container{entry.PodUID, entry.ContainerName, entry.ResourceName, map[string][]string{}, entry.AllocResp}
		for node, ids := range entry.DeviceIDs {
			sort.Strings(ids)
			container.Devices[fmt.Sprint(node)] = ids
		}
		files.Containers = append(files.Containers, container)
	}
	sort.Slice(files.Containers, func(i, j int) bool {
		a, b := files.Containers[i], files.Containers[j]
		return a.Pod+a.Container+a.Resource < b.Pod+b.Container+b.Resource
	})
	for resource := range registered {
		files.Resources = append(files.Resources, resource)
	}
	sort.Strings(files.Resources)
	checkpointer := must(state.NewCheckpointer(dir, claimsFile))
	list := must(must(checkpointer.GetOrCreate()).GetClaimInfoStateList())
	files.Claims = append(files.Claims, list...)
	sort.Slice(files.Claims, func(i, j int) bool { return files.Claims[i].ClaimName < files.Claims[j].ClaimName })
	return files
}

func main() {
	flags := flag.NewFlagSet("checkpoint", flag.ExitOnError)
	seed := flags.Uint64("seed", 1, "another one is another node")
	check(flags.Parse(os.Args[2:]))
	switch os.Args[1] {
	case "write":
		write(flags.Arg(0), *seed)
	case "read":
		encoder := json.NewEncoder(os.Stdout)
		check(encoder.Encode(read(flags.Arg(0))))
	default:
		fmt.Fprintln(os.Stderr, "usage: checkpoint write|read DIR")
		os.Exit(2)
	}
}
