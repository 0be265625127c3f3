// SPDX-License-Identifier: Apache-2.0
//
// fake-dra-driver: a DRA driver without hardware, that can be told to
// misbehave. All it does lives in devmgr/testing.h.
#include <devmgr/testing.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Flags {
  devmgr::testing::FakeDraDriverOptions options;
  std::string root;
  std::string scenario;
  std::string health = "none";
};

void Complain(const std::string& text) {
  std::fprintf(stderr, "fake-dra-driver: %s\n", text.c_str());
}

/// Reads the command line. False: there is nothing to run, `*code` tells why.
bool ParseFlags(int argc, char** argv, Flags* flags, int* code) {
  CLI::App app(
      "A DRA driver without hardware. It registers in DIR/plugins_registry,\n"
      "prepares the claims it finds in DIR/manifests, writes CDI spec files\n"
      "into DIR/cdi and prints one JSON line per event.\n"
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
         "Number of devices to publish; other devices are prepared as well")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--health", flags->health,
                 "Health service to offer; prepared devices are healthy until "
                 "a step of the scenario changes that")
      ->check(CLI::IsMember({"v1", "v1alpha1", "none"}))
      ->type_name("v1|v1alpha1|none")
      ->capture_default_str();
  app.add_option("--scenario", flags->scenario,
                 "YAML file with steps of misbehaviour")
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *code = app.exit(error) == 0 ? 0 : kUsage;
    return false;
  }
  options.root = flags->root;
  if (flags->health != "none") options.health = flags->health;
  return true;
}

int Run(Flags flags) {
  auto& options = flags.options;
  if (!flags.scenario.empty()) {
    auto steps = devmgr::testing::ReadScenario(flags.scenario);
    if (!steps.ok()) {
      Complain(std::string(steps.status().message()));
      return kUsage;
    }
    options.scenario = *std::move(steps);
  }
  options.on_event = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  };

  // Before any thread starts, so that all of them inherit the mask and only
  // sigwait sees the signal.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  // Who reads our events may leave; the sockets have to go in order.
  signal(SIGPIPE, SIG_IGN);

  const auto driver = devmgr::testing::FakeDraDriver::Start(std::move(options));
  if (!driver.ok()) {
    Complain(std::string(driver.status().message()));
    return driver.status().code() == absl::StatusCode::kInvalidArgument
               ? kUsage
               : kFailed;
  }
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  int code = 0;
  if (!ParseFlags(argc, argv, &flags, &code)) return code;
  return Run(std::move(flags));
}
