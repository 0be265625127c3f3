// SPDX-License-Identifier: Apache-2.0
//
// What the programs around the fakes of devmgr/testing.h do in the same way.
#pragma once

#include <absl/status/status.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace devmgr {

/// Reads the command line. False: there is nothing to run, and `*code` is what
/// the program ends with.
bool ParseCommandLine(CLI::App* app, int argc, char** argv, int* code);

/// Prints an event as one line of standard output.
void PrintEvent(std::string_view line);

/// Sees to it that SIGTERM and SIGINT wait for AwaitEnd. Before any thread
/// starts, so that all of them inherit the mask.
void HoldBackSignals();

/// Returns once SIGTERM or SIGINT has come.
void AwaitEnd();

/// Reports `error` of program `name` on standard error; the exit code.
int Complain(std::string_view name, const absl::Status& error, bool usage);

/// Runs the fake that `Start` makes of `options`, with the steps that
/// `read_scenario` finds in the file `scenario` (none if it is empty), until a
/// signal ends it. The exit code of the program `name`.
template <typename Options, typename Read, typename Start>
int RunFake(std::string_view name, Options options, const std::string& scenario,
            const Read& read_scenario, const Start& start) {
  if (!scenario.empty()) {
    auto steps = read_scenario(scenario);
    if (!steps.ok()) return Complain(name, steps.status(), true);
    options.scenario = *std::move(steps);
  }
  options.on_event = PrintEvent;
  HoldBackSignals();
  const auto fake = start(std::move(options));
  if (!fake.ok()) {
    return Complain(name, fake.status(),
                    absl::IsInvalidArgument(fake.status()));
  }
  AwaitEnd();
  return 0;
}

}  // namespace devmgr
