// SPDX-License-Identifier: Apache-2.0
//
// fake-device-plugin: a device plugin without hardware, that can be told to
// misbehave. All it does lives in devmgr/testing.h.
#include <devmgr/testing.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <utility>

#include "shared/fake_program.h"

namespace {

using Options = devmgr::testing::FakeDevicePluginOptions;

const std::map<std::string, Options::Way> kWays = {
    {"socket", Options::Way::kSocket},
    {"directory", Options::Way::kDirectory},
    {"both", Options::Way::kBoth},
};

struct Flags {
  Options options;
  std::string root;
  std::string way = "socket";
  std::string scenario;
};

void DeclareFlags(CLI::App* app, Flags* flags) {
  auto& options = flags->options;
  app->add_option("--resource", options.resource, "Extended resource name")
      ->required()
      ->type_name("NAME");
  app->add_option("--root", flags->root,
                  "Root directory, as of `devmgrd --root`")
      ->required()
      ->type_name("DIR");
  app->add_option("--devices", options.devices, "Number of devices")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app->add_option(
         "--numa", options.numa,
         "NUMA nodes of the devices, in turn; none: devices have no NUMA node")
      ->delimiter(',')
      ->type_name("0,1");
  app->add_option("--register", flags->way,
                  "How to register with the device manager")
      ->type_name("socket|directory|both")
      ->check(CLI::IsMember(kWays))
      ->capture_default_str();
  app->add_flag("--preferred", options.preferred,
                "Offer GetPreferredAllocation");
  app->add_flag("--prestart", options.pre_start,
                "Require PreStartContainer before each start of a container");
  app->add_flag(
      "--cdi", options.cdi,
      "Answer with CDI device names, and write a spec file to DIR/cdi");
  app->add_option(
         "--instance", options.instance,
         "Part of the socket's name, to run several instances for one resource")
      ->type_name("ID");
  app->add_option("--scenario", flags->scenario,
                  "YAML file with steps of misbehaviour")
      ->type_name("FILE");
}

/// Reads the command line. False: there is nothing to run, `*code` tells why.
bool ParseFlags(int argc, char** argv, Flags* flags, int* code) {
  CLI::App app(
      "A device plugin without hardware. It registers with the socket\n"
      "DIR/device-plugins/kubelet.sock or in DIR/plugins_registry, has "
      "devices\n"
      "<name part of the resource>-0 and so on, and prints one JSON line per\n"
      "event. SIGTERM ends it.");
  DeclareFlags(&app, flags);
  if (!devmgr::ParseCommandLine(&app, argc, argv, code)) return false;
  flags->options.root = flags->root;
  flags->options.way = kWays.at(flags->way);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  int code = 0;
  if (!ParseFlags(argc, argv, &flags, &code)) return code;
  return devmgr::RunFake("fake-device-plugin", std::move(flags.options),
                         flags.scenario, devmgr::testing::ReadPluginScenario,
                         devmgr::testing::FakeDevicePlugin::Start);
}
