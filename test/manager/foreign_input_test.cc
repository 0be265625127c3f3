// SPDX-License-Identifier: Apache-2.0
//
// Invariant 8 on a running node: nothing foreign can crash it, block it or make
// it grow. Garbage comes through every door at once, round after round, while
// an honest pod holds its device and another one comes and goes.
#include <devmgr/device_manager.h>
#include <devmgr/inspection.h>
#include <devmgr/testing.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/sanitizers.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using Action = devmgr::testing::ScenarioStep::Action;
using devmgr::testing::FakeDraDriver;
using devmgr::testing::FakeDraDriverOptions;
using devmgr::testing::ScenarioStep;

std::size_t CountIn(const std::filesystem::path& directory) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    (void)entry;
    ++count;
  }
  return count;
}

/// What this process takes of the machine.
struct Usage {
  std::size_t descriptors = CountIn("/proc/self/fd");
  std::size_t threads = CountIn("/proc/self/task");
  std::size_t resident_bytes = ResidentBytes();

  static std::size_t ResidentBytes() {
    std::size_t pages = 0;
    std::ifstream statm("/proc/self/statm");
    statm >> pages >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  }
};

sockaddr_un AddressOf(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

UniqueFd ListenAt(const std::filesystem::path& path) {
  UniqueFd fd = NewSocket();
  const sockaddr_un address = AddressOf(path);
  bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  listen(fd.get(), 16);
  return fd;
}

UniqueFd ConnectTo(const std::filesystem::path& path) {
  UniqueFd fd = NewSocket();
  const sockaddr_un address = AddressOf(path);
  connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
          sizeof address);
  return fd;
}

class ForeignInputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"manifests", "plugins", "plugins_registry"}) {
      std::filesystem::create_directories(root_ / folder);
    }
    FakeDraDriverOptions driver;
    driver.name = kDriver;
    driver.root = root_;
    driver.crash = [] {};
    auto started = FakeDraDriver::Start(driver);
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    driver_ = *std::move(started);
    source_ = WatchManifests(root_ / "manifests");
    DeviceManagerOptions options;
    options.ledger.in_memory = true;
    options.plugin_registry_dir = root_ / "plugins_registry";
    options.plugin_dirs = {root_ / "plugins"};
    options.dra.call_timeout = milliseconds(300);
    options.dra.max_calls = 4;
    options.max_events = 100;
    options.actuate = Actuate::kSource;
    options.retries.first = milliseconds(5);
    options.retries.last = milliseconds(100);
    Host host;
    host.objects = source_.get();
    auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status().ToString();
    manager_ = *std::move(manager);
    auto server = InspectionServer::Start(*manager_, Socket());
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    auto inspector = Inspector::Connect(Socket(), kPatience);
    ASSERT_TRUE(inspector.ok()) << inspector.status().ToString();
    inspector_ = *std::move(inspector);
  }

  std::filesystem::path Socket() const { return root_ / "inspect.sock"; }

  void WriteManifest(const std::string& name, const std::string& text) {
    std::ofstream(root_ / "manifests" / name) << text;
  }
  void RemoveManifest(const std::string& name) {
    std::filesystem::remove(root_ / "manifests" / name);
  }

  void PublishPod(const std::string& name) {
    WriteManifest(
        name + ".yaml",
        ClaimYaml("c-" + name, "u-c-" + name, {kDriver}, {"u-" + name}) +
            PodYaml(name, "u-" + name, {"c-" + name}));
  }

  /// Waits through the inspection socket, as an operator would.
  template <typename Condition>
  ::testing::AssertionResult WaitUntil(const std::string& what,
                                       Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::uint64_t version = 0;
    for (;;) {
      const auto next = inspector_->WaitForChange(version, milliseconds(500));
      if (!next.ok()) {
        return ::testing::AssertionFailure() << next.status().ToString();
      }
      version = *next;
      if (condition()) return ::testing::AssertionSuccess();
      if (std::chrono::steady_clock::now() > deadline) {
        return ::testing::AssertionFailure() << "never " << what;
      }
    }
  }
  ::testing::AssertionResult WaitFor(const std::string& pod, PodState state) {
    return WaitUntil(pod + " is " + std::string(PodStateName(state)), [&] {
      const auto info = inspector_->FindPod({"default", pod});
      return info.ok() && info->state == state;
    });
  }
  ::testing::AssertionResult WaitUntilGone(const std::string& pod) {
    return WaitUntil(pod + " is gone", [&] {
      return absl::IsNotFound(inspector_->FindPod({"default", pod}).status());
    });
  }

  std::string Noise(std::size_t bytes) {
    std::string noise(bytes, '\0');
    for (char& c : noise) c = static_cast<char>(random_());
    return noise;
  }

  void DriverMisbehaves(int round) {
    static constexpr Action kActions[] = {
        Action::kFail,       Action::kFailClaim,    Action::kTooLittle,
        Action::kHang,       Action::kUnknownClaim, Action::kGarbageNames,
        Action::kCrashAfter, Action::kDropSocket};
    for (const char* method : {"prepare", "unprepare"}) {
      for (int i = 0; i < 2; ++i) {
        ScenarioStep step;
        step.method = method;
        step.action = kActions[(2 * round + i) % std::size(kActions)];
        if (step.action == Action::kDropSocket) step.delay = milliseconds(1);
        step.message = Noise(20'000);
        driver_->AddStep(step);
      }
    }
  }

  /// Sockets that introduce themselves with garbage or not at all, and things
  /// that are no sockets.
  void PluginsMisbehave() {
    const auto registry = root_ / "plugins_registry";
    for (int i = 0; i < 4; ++i) {
      listeners_.push_back(
          ListenAt(registry / ("noise-" + std::to_string(i) + ".sock")));
    }
    std::ofstream(registry / "a-file.sock") << Noise(100);
    mkfifo((registry / "a-pipe.sock").c_str(), 0600);
    std::filesystem::create_symlink(registry / "loop.sock",
                                    registry / "loop.sock");
    std::filesystem::create_directory(registry / "a-directory.sock");
    for (std::size_t i = 0; i < listeners_.size(); i += 2) {
      const UniqueFd peer(accept(listeners_[i].get(), nullptr, nullptr));
      const std::string noise = Noise(5'000);
      send(peer.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  void ClientsMisbehave() {
    for (int i = 0; i < 40; ++i) {
      UniqueFd client = ConnectTo(Socket());
      std::string noise = Noise(i * 97);
      if (i % 3 == 0) noise = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise;
      if (i % 3 == 1) noise = "GET / HTTP/1.1\r\n\r\n";
      send(client.get(), noise.data(), noise.size(),
           MSG_NOSIGNAL | MSG_DONTWAIT);
      if (i % 2 == 0) clients_.push_back(std::move(client));
    }
  }

  void ManifestsMisbehave() {
    WriteManifest("bad-1.yaml", Noise(50'000));
    WriteManifest("bad-2.json", std::string(100'000, '['));
    WriteManifest("bad-3.yaml",
                  "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\n"
                  "c: &c [*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c]\n"
                  "e: &e [*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n");
    const std::string pod = PodYaml("half", "u-half", {"c"});
    WriteManifest("bad-4.yaml", pod.substr(0, random_() % pod.size()));
    std::string wrong = PodYaml("wrong", "u-wrong", {"c"});
    wrong[random_() % wrong.size()] = static_cast<char>(random_());
    WriteManifest("bad-5.yaml", wrong);
  }

  /// All strangers leave again.
  void Calm() {
    driver_->ClearSteps();
    driver_->ReleaseHanging();
    listeners_.clear();
    clients_.clear();
    const auto registry = root_ / "plugins_registry";
    for (const auto& entry : std::filesystem::directory_iterator(registry)) {
      const std::string name = entry.path().filename();
      if (name.find(kDriver) == std::string::npos) {
        std::filesystem::remove_all(entry.path());
      }
    }
    for (const char* name : {"bad-1.yaml", "bad-2.json", "bad-3.yaml",
                             "bad-4.yaml", "bad-5.yaml"}) {
      RemoveManifest(name);
    }
  }

  std::mt19937 random_{TestSeed(8)};
  const TempFolder folder_;
  const std::filesystem::path root_ = folder_.path();
  std::unique_ptr<FakeDraDriver> driver_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<InspectionServer> server_;
  std::unique_ptr<Inspector> inspector_;
  std::vector<UniqueFd> listeners_;
  std::vector<UniqueFd> clients_;
};

TEST_F(ForeignInputTest, NeitherCrashesNorBlocksNorGrowsTheManager) {
  constexpr int kWarmUp = 2;
  const int rounds = kWarmUp + 3 * TestScale();
  PublishPod("steady");
  ASSERT_TRUE(WaitFor("steady", PodState::kReady));
  const auto steady = inspector_->Resolve({"default", "steady"});
  ASSERT_TRUE(steady.ok()) << steady.status().ToString();
  Usage before;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round == kWarmUp) before = Usage();
    const std::string pod = "p-" + std::to_string(round);
    DriverMisbehaves(round);
    PluginsMisbehave();
    ClientsMisbehave();
    PublishPod(pod);
    ASSERT_TRUE(WaitFor(pod, PodState::kReady));
    ManifestsMisbehave();
    ASSERT_TRUE(WaitUntil("the source complains", [&] {
      return !inspector_->Node()->source_problems.empty();
    }));
    EXPECT_EQ(*manager_->PodDevicesOf(PodUid{"u-steady"}).value(), *steady);
    Calm();
    RemoveManifest(pod + ".yaml");
    ASSERT_TRUE(WaitUntilGone(pod));
  }
  EXPECT_EQ(driver_->PreparedClaims().size(), 1u);
  // Connections of strangers end when the manager comes to it.
  EXPECT_TRUE(
      WaitUntil("the descriptors are closed",
                [&] { return Usage().descriptors <= before.descriptors + 4; }))
      << Usage().descriptors << " of " << before.descriptors;
  const Usage after;
  EXPECT_LE(after.threads, before.threads + 2);
  if (!kSanitized) {
    EXPECT_LE(after.resident_bytes, before.resident_bytes + (32u << 20));
  }
  std::printf("%d rounds: %zu descriptors, then %zu; %zu KiB, then %zu\n",
              rounds, before.descriptors, after.descriptors,
              before.resident_bytes / 1024, after.resident_bytes / 1024);
}

}  // namespace
}  // namespace devmgr
