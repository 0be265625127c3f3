// SPDX-License-Identifier: Apache-2.0

// A DRA driver on the official helper (k8s.io/dynamic-resource-allocation's
// kubeletplugin), as vendors build theirs. The API server is client-go's fake
// one, with the claims of a manifest. Prints one line per event.
//
//	driver --name DRIVER --root DIR --manifest FILE [--instance UID]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

type driver struct{ name string }

func (d driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var devices []kubeletplugin.Device
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Driver != d.name {
				continue
			}
			id := fmt.Sprintf("%s/claim=%s-%s", d.name, claim.UID, result.Device)
			devices = append(devices, kubeletplugin.Device{
				Requests:     []string{result.Request},
				PoolName:     result.Pool,
				DeviceName:   result.Device,
				CDIDeviceIDs: []string{id},
			})
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices}
		fmt.Printf("prepared %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
	}
	return results, nil
}

func (d driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = nil
		fmt.Printf("unprepared %s/%s %s\n", claim.Namespace, claim.Name, claim.UID)
	}
	return results, nil
}

func (d driver) HandleError(_ context.Context, err error, message string) {
	log.Printf("%s: %v", message, err)
}

// claimsOf reads the ResourceClaims of a manifest.
func claimsOf(path string) ([]runtime.Object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var claims []runtime.Object
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return claims, nil
		} else if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if err != nil {
			return nil, err
		}
		if claim, ok := object.(*resourceapi.ResourceClaim); ok {
			claims = append(claims, claim)
		}
	}
}

func main() {
	name := flag.String("name", "", "driver name")
	root := flag.String("root", "", "as devmgrd --root")
	manifest := flag.String("manifest", "", "file with the claims")
	instance := flag.String("instance", "", "pod UID for a rolling update")
	flag.Parse()

	claims, err := claimsOf(*manifest)
	if err != nil {
		log.Fatal(err)
	}
	data := filepath.Join(*root, "plugins", *name)
	if err := os.MkdirAll(data, 0o750); err != nil {
		log.Fatal(err)
	}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(*name),
		kubeletplugin.NodeName("node-1"),
		kubeletplugin.KubeClient(fake.NewClientset(claims...)),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(*root, "plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data),
	}
	if *instance != "" {
		options = append(options, kubeletplugin.RollingUpdate(types.UID(*instance)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	helper, err := kubeletplugin.Start(ctx, driver{*name}, options...)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("started")
	<-ctx.Done()
	helper.Stop()
}
