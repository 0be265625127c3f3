// SPDX-License-Identifier: Apache-2.0
//
// fake-dra-driver: a DRA driver without hardware, that can be told to
// misbehave. All it does lives in devmgr/testing.h.
#include <devmgr/testing.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "shared/fake_program.h"

namespace {

struct Flags {
  devmgr::testing::FakeDraDriverOptions options;
  std::string root;
  std::string scenario;
  std::string kubeconfig;
  std::string health = "none";
};

/// Reads the command line. False: there is nothing to run, `*code` tells why.
bool ParseFlags(int argc, char** argv, Flags* flags, int* code) {
  CLI::App app(
      "A DRA driver without hardware. It registers in DIR/plugins_registry,\n"
      "prepares the claims it finds in DIR/manifests, and those that clients\n"
      "of devmgrd brought, in DIR/state/wanted, writes CDI spec files\n"
      "into DIR/cdi and prints one JSON line per event. With --publish it\n"
      "does as stock drivers do: it publishes ResourceSlices to an API "
      "server,\n"
      "such as the endpoint of devmgrd, and reads claims there.\n"
      "SIGTERM ends it; what is prepared stays prepared.");
  auto& options = flags->options;
  app.add_option("--name", options.name, "Driver name")
      ->required()
      ->type_name("DRIVER");
  app.add_option("--root", flags->root,
                 "Root directory, as of `devmgrd --root`")
      ->required()
      ->type_name("DIR");
  app.add_option("--instance", options.instance,
                 "UID of this instance, to run several with sockets of their "
                 "own; they share what is prepared")
      ->type_name("UID");
  app.add_option("--api", options.api, "API versions to offer, in this order")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"v1", "v1beta1", "v1alpha4", "v1alpha3", "v1alpha2", "v1alpha1"}))
      ->type_name("v1,...,v1alpha1")
      ->capture_default_str();
  app.add_option("--pool", options.pool, "Pool of its devices")
      ->type_name("P")
      ->capture_default_str();
  app.add_option(
         "--devices", options.devices,
         "Number of devices that it has; other devices are prepared as well")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* publish =
      app.add_flag("--publish", options.publish,
                   "Publish the devices in a pool with the name of the node");
  app.add_option("--kubeconfig", flags->kubeconfig,
                 "API server to publish to; waited for while it is not there "
                 "(default: DIR/kubeconfig/DRIVER)")
      ->needs(publish)
      ->type_name("FILE");
  app.add_option("--node-name", options.node_name,
                 "Node of the devices (default: the one node that the API "
                 "server shows)")
      ->needs(publish)
      ->type_name("NODE");
  app.add_option("--health", flags->health,
                 "Health service to offer; prepared devices are healthy until "
                 "a step of the scenario changes that")
      ->check(CLI::IsMember({"v1", "v1alpha1", "none"}))
      ->type_name("v1|v1alpha1|none")
      ->capture_default_str();
  app.add_option("--scenario", flags->scenario,
                 "YAML file with steps of misbehaviour")
      ->type_name("FILE");
  if (!devmgr::ParseCommandLine(&app, argc, argv, code)) return false;
  options.root = flags->root;
  options.kubeconfig = flags->kubeconfig;
  if (flags->health != "none") options.health = flags->health;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  int code = 0;
  if (!ParseFlags(argc, argv, &flags, &code)) return code;
  return devmgr::RunFake("fake-dra-driver", std::move(flags.options),
                         flags.scenario, devmgr::testing::ReadScenario,
                         devmgr::testing::FakeDraDriver::Start);
}
