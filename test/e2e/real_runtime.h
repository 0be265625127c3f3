// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace devmgr {

// What the tests with real container runtimes share.

/// Starts a program of the system; what it says is added to the file `output`.
pid_t SpawnProgram(const std::vector<std::string>& words,
                   const std::filesystem::path& output);
/// Runs a program of the system to its end; its exit code.
int RunProgram(const std::vector<std::string>& words, std::string* output);

/// Why containers cannot run here, as far as that shows without trying: no
/// root, or one of `programs` or busybox is not there. Empty: they may.
std::string WhyNoContainers(const std::vector<std::string>& programs);

/// Makes the root file system of a container: a shell and some commands, all
/// of them busybox. Returns what went wrong, or nothing.
std::string MakeRootFolder(const std::filesystem::path& folder);

/// The pod `p`. Its container `c` has a device of the plugin for
/// `example.com/tpu`, a claim, and an extended resource that a class backs
/// (KEP-5004); `plain` has nothing. With the claims that a scheduler made.
extern const char kRuntimePod[];
constexpr char kRuntimePodUid[] = "5a1f3c4e-0000-4000-8000-000000000021";

/// The words of a container that tells all that it may have been given.
std::vector<std::string> LookingCommand();
/// What it says with the devices of `c`, and without.
::testing::Matcher<std::string> HasAllDevices();
::testing::Matcher<std::string> HasNoDevices();

}  // namespace devmgr
