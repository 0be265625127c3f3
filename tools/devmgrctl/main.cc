// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl: what a node operator sees of a device manager.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "files.h"
#include "run.h"

namespace {

volatile std::sig_atomic_t printed = 0;

/// Who interrupts a stream has seen what he wanted.
void OnInterrupt(int) {
  _exit(printed != 0 ? devmgr::ctl::kExitDone : devmgr::ctl::kExitInterrupted);
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away ends us quietly, whatever our parent ignores.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGINT, OnInterrupt);
  const devmgr::ctl::Environment environment{
      .out = std::cout,
      .err = std::cerr,
      .out_is_terminal = isatty(STDOUT_FILENO) != 0,
      .getenv = [](const char* name) { return std::getenv(name); },
      .connect = devmgr::Inspector::Connect,
      .open_state_dir = devmgr::Inspector::OpenStateDir,
      .convert_state_dir = devmgr::ConvertStateDir,
      .verify_kubelet = devmgr::VerifyKubeletFiles,
      .import_kubelet = devmgr::ImportKubelet,
      .export_kubelet = devmgr::ExportKubelet,
      .connect_runtime = devmgr::RuntimeInspector::Connect,
      .connect_pod_resources = devmgr::PodResourcesClient::Connect,
      .now = std::chrono::system_clock::now,
      .steady_now = std::chrono::steady_clock::now,
      .pause =
          [](std::chrono::milliseconds time) {
            poll(nullptr, 0, static_cast<int>(time.count()));
          },
      .on_printed = [] { printed = 1; },
      .open_cdi_dirs = devmgr::CdiCache::Open,
      .read_file = devmgr::ctl::ReadFile,
      .replace_file = devmgr::ctl::ReplaceFile,
  };
  return devmgr::ctl::Run({argv + 1, argv + argc}, environment);
}
