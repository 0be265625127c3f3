// SPDX-License-Identifier: Apache-2.0
#include "shared/fake_program.h"

#include <csignal>
#include <cstdio>

namespace devmgr {
namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

bool ParseCommandLine(CLI::App* app, int argc, char** argv, int* code) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *code = app->exit(error) == 0 ? 0 : kUsage;
    return false;
  }
  return true;
}

void PrintEvent(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

void HoldBackSignals() {
  const sigset_t ending = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  // The reader of the events may leave; the sockets have to go in order.
  signal(SIGPIPE, SIG_IGN);
}

void AwaitEnd() {
  const sigset_t ending = EndingSignals();
  int signal_number = 0;
  sigwait(&ending, &signal_number);
}

int Complain(std::string_view name, const absl::Status& error, bool usage) {
  std::fprintf(stderr, "%s: %s\n", std::string(name).c_str(),
               std::string(error.message()).c_str());
  return usage ? kUsage : kFailed;
}

}  // namespace devmgr
