// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// connect is a client of a real API server. The folder holds `ca.crt`, and
// `NAME.crt` and `NAME.key` of the driver's account.
func connect(server, folder, account string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{
		Host: server,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   filepath.Join(folder, "ca.crt"),
			CertFile: filepath.Join(folder, account+".crt"),
			KeyFile:  filepath.Join(folder, account+".key"),
		},
		QPS:   100,
		Burst: 200,
	})
}

// slices are one pool of the node with `count` devices: gpu-0, gpu-1, ...
func slices(node string, count int) resourceslice.DriverResources {
	var devices []resourceapi.Device
	for i := range count {
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		node: {Slices: []resourceslice.Slice{{Devices: devices}}},
	}}
}

// specs is the folder where the CDI spec files of prepared claims are; empty:
// none are written.
type specs string

func (s specs) path(driver string, claim types.UID) string {
	return filepath.Join(string(s), fmt.Sprintf("%s-claim_%s.json", driver, claim))
}

// write gives each device an environment variable and a device node.
func (s specs) write(driver string, claim types.UID, devices []kubeletplugin.Device) error {
	if s == "" {
		return nil
	}
	var entries []any
	for _, device := range devices {
		entries = append(entries, map[string]any{
			"name": fmt.Sprintf("%s-%s", claim, device.DeviceName),
			"containerEdits": map[string]any{
				"env":         []string{"GPU=" + device.DeviceName},
				"deviceNodes": []any{map[string]any{"path": "/dev/" + device.DeviceName, "hostPath": "/dev/null"}},
			},
		})
	}
	text, err := json.Marshal(map[string]any{
		"cdiVersion": "0.6.0", "kind": driver + "/claim", "devices": entries,
	})
	if err != nil {
		return err
	}
	path := s.path(driver, claim)
	if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (s specs) remove(driver string, claim types.UID) error {
	if s == "" {
		return nil
	}
	if err := os.Remove(s.path(driver, claim)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
