// SPDX-License-Identifier: Apache-2.0
//
// A host that forks while a manager is open (docs/embedding.md, "fork"). The
// child has one thread and none of ours: it may exec or _exit, nothing else.
#include <devmgr/device_manager.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "support/temp_folder.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

/// A child process; killed and reaped at the end at the latest.
class Child {
 public:
  /// In the child `run` is called, which must not return.
  template <typename Run>
  explicit Child(Run run) : pid_(::fork()) {
    if (pid_ == 0) {
      run();
      ::_exit(127);
    }
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  /// The exit code, or -1 when it did not exit by itself.
  int Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }

 private:
  pid_t pid_;
};

class ForkTest : public ::testing::Test {
 protected:
  DeviceManagerOptions Options() const {
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    return options;
  }
  std::unique_ptr<DeviceManager> Open() const {
    auto manager = DeviceManager::Open(Options());
    EXPECT_TRUE(manager.ok()) << manager.status();
    return manager.ok() ? *std::move(manager) : nullptr;
  }
  void Admit(DeviceManager& manager, const std::string& name) const {
    Pod pod;
    pod.metadata.name = name;
    pod.metadata.ns = "default";
    pod.metadata.uid = name;
    pod.spec.containers.resize(1);
    pod.spec.containers[0].name = "main";
    const auto verdict = manager.AdmitPod(pod);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    const absl::Status prepared = manager.PreparePod(PodUid{name});
    EXPECT_TRUE(prepared.ok()) << prepared;
  }

  const TempFolder folder_;
};

TEST_F(ForkTest, AManagerGoesOnWhenItsHostForks) {
  const auto manager = Open();
  for (int i = 0; i < 20; ++i) {
    Child child([] { ::_exit(7); });
    ASSERT_TRUE(child.started());
    Admit(*manager, "pod-" + std::to_string(i));
    EXPECT_EQ(child.Wait(), 7);
  }
  EXPECT_EQ(manager->View()->Pods().size(), 20u);
}

/// How many descriptors a program finds open.
int DescriptorsOfAProgram() {
  Child child([] {
    ::execl("/bin/sh", "sh", "-c", "set -- /proc/$$/fd/*; exit $#", nullptr);
  });
  return child.Wait();
}

TEST_F(ForkTest, AProgramThatIsExecutedInheritsNothingOfOurs) {
  const int before = DescriptorsOfAProgram();
  EXPECT_GE(before, 3);
  const auto manager = Open();
  EXPECT_EQ(DescriptorsOfAProgram(), before);
}

/// The lock used to stay with the child, who had inherited it.
TEST_F(ForkTest, AChildThatLivesOnDoesNotKeepTheLedgerLocked) {
  auto manager = Open();
  const Child child([] {
    for (;;) ::pause();
  });
  ASSERT_TRUE(child.started());
  Admit(*manager, "pod-1");
  manager.reset();
  manager = Open();
  ASSERT_NE(manager, nullptr);
  EXPECT_EQ(manager->View()->Pods().size(), 1u);
}

TEST_F(ForkTest, AManagerOpensInAChildForkedWhileNoneWasOpen) {
  Child child([this] {
    const auto manager = DeviceManager::Open(Options());
    if (!manager.ok()) ::_exit(1);
    ::_exit((*manager)->View()->Pods().empty() ? 0 : 2);
  });
  ASSERT_TRUE(child.started());
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_NE(Open(), nullptr);
}

}  // namespace
}  // namespace devmgr
