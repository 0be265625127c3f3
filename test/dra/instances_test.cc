// SPDX-License-Identifier: Apache-2.0
//
// Several instances of one driver: which one is called, in whatever order they
// come, connect, hang up and leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "dra/driver_registry.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using registration::Plugin;
using testing::ElementsAre;

/// One instance's socket, at which somebody listens or not.
class Service {
 public:
  Service() { peer_.AnswerProbes(""); }

  absl::StatusOr<std::unique_ptr<rpc::Connection>> Dial(
      const std::filesystem::path& socket, std::function<void()> on_hang_up) {
    auto connection = peer_.Dial(socket, std::move(on_hang_up));
    if (connection.ok()) ++lines_;
    return connection;
  }

  bool listening() const { return listening_; }
  void SetListening(bool listening) {
    listening_ = listening;
    peer_.set_dial_status(listening ? absl::OkStatus()
                                    : UnavailableError("nobody listens"));
    if (listening) return;
    for (; cut_ < lines_; ++cut_) peer_.HangUp(cut_);
  }

  std::size_t calls() const { return peer_.calls().size(); }
  void AnswerAll() {
    for (; answered_ < calls(); ++answered_) peer_.Answer(answered_, "");
  }

 private:
  FakePeer peer_;
  bool listening_ = true;
  std::size_t lines_ = 0;  ///< Connections made.
  std::size_t cut_ = 0;    ///< Of these ended.
  std::size_t answered_ = 0;
};

/// A manager's drivers, of which there is one, in instances `a`, `b`, ...
class Instances {
 public:
  Instances() { Start(); }

  /// The manager starts, or starts again, and knows of nobody.
  void Start() {
    registry_.reset();
    DriverRegistryOptions options;
    options.now = [] { return WallTime(); };
    options.on_change = [](const std::string&) {};
    registry_ = std::make_unique<DriverRegistry>(
        executor_,
        [this](const auto& socket, auto on_hang_up) {
          return services_[socket.filename().string()].Dial(
              socket, std::move(on_hang_up));
        },
        options);
  }

  void Register(const std::string& name, std::int64_t born) {
    ASSERT_THAT(registry_->Register(PluginOf(name, born)), IsOk());
    executor_.RunPending();
  }
  void Deregister(const std::string& name) {
    registry_->Deregister(PluginOf(name, 0));
  }
  Service& At(const std::string& name) { return services_[name]; }

  /// Time passes until all have connected that can be.
  void Settle() { executor_.Advance(DriverInstance::kLastRetry); }

  /// The instance that gets a call now; none when the call is not sent.
  std::string Called() {
    std::map<std::string, std::size_t> before;
    for (const auto& [name, service] : services_) {
      before[name] = service.calls();
    }
    registry_->Unprepare(kDriver, {{ClaimUid{"u"}, NameOf("C")}},
                         [](const UnprepareAnswer&) {});
    std::string called;
    for (auto& [name, service] : services_) {
      if (service.calls() != before[name]) called += name;
      service.AnswerAll();
    }
    executor_.RunPending();
    return called;
  }

  std::vector<std::string> Shown() const {
    std::vector<std::string> endpoints;
    for (const auto& info : registry_->Plugins()) {
      endpoints.push_back(info->endpoint);
    }
    return endpoints;
  }

 private:
  static Plugin PluginOf(const std::string& name, std::int64_t born) {
    Plugin plugin{
        DriverRegistry::kPluginType, kDriver, "/" + name, {"v1.DRAPlugin"}, {}};
    plugin.socket_born_ns = born;
    plugin.registration = std::hash<std::string>()(name);
    return plugin;
  }

  ManualExecutor executor_;
  std::map<std::string, Service> services_;
  std::unique_ptr<DriverRegistry> registry_;
};

// What was registered last used to be called: after a restart in the middle of
// a rolling update that was whichever was found last.
TEST(InstancesTest, TheNewestIsCalledInWhateverOrderTheyAreFound) {
  std::vector<std::pair<std::string, std::int64_t>> order = {
      {"a", 100}, {"b", 200}, {"c", 300}};
  do {
    Instances instances;
    for (const auto& [name, born] : order) instances.Register(name, born);
    EXPECT_EQ(instances.Called(), "c");
    instances.Deregister("c");
    EXPECT_EQ(instances.Called(), "b");
    instances.Register("c", 300);
    EXPECT_EQ(instances.Called(), "c");
    instances.Deregister("a");
    EXPECT_EQ(instances.Called(), "c");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(InstancesTest, OfThoseOfOneTimeTheLastRegisteredIsCalled) {
  Instances instances;
  instances.Register("b", 7);
  instances.Register("a", 7);
  EXPECT_EQ(instances.Called(), "a");
  instances.Register("c", 7);
  EXPECT_EQ(instances.Called(), "c");
  instances.Register("d", 6);
  EXPECT_EQ(instances.Called(), "c");
}

TEST(InstancesTest, ASocketMadeAnewMakesItsInstanceTheNewest) {
  Instances instances;
  instances.Register("a", 1);
  instances.Register("b", 2);
  instances.Deregister("a");
  instances.Register("a", 3);
  EXPECT_EQ(instances.Called(), "a");
}

TEST(InstancesTest, AreShownOldestFirst) {
  Instances instances;
  instances.Register("b", 2);
  instances.Register("a", 1);
  instances.Register("c", 3);
  EXPECT_THAT(instances.Shown(), ElementsAre("/a", "/b", "/c"));
}

/// What is registered, and by the rule alone, who is called.
struct Reference {
  struct Known {
    std::string name;
    std::int64_t born = 0;
    int registered = 0;  ///< Counts up.
  };
  std::vector<Known> known;

  auto Find(const std::string& name) {
    return std::find_if(known.begin(), known.end(),
                        [&](const Known& each) { return each.name == name; });
  }

  /// The newest that listens.
  std::string Called(Instances& instances) const {
    const Known* newest = nullptr;
    for (const Known& each : known) {
      if (!instances.At(each.name).listening()) continue;
      if (newest == nullptr || std::pair(newest->born, newest->registered) <
                                   std::pair(each.born, each.registered)) {
        newest = &each;
      }
    }
    return newest == nullptr ? "" : newest->name;
  }
};

/// Does the same to the instances and to the reference, at random.
class RandomWalk {
 public:
  explicit RandomWalk(Luck& luck) : luck_(luck) {}

  std::vector<RandomStep> Steps() {
    return {{"come or go", 2, [this] { return ComeOrGo(); }},
            {"up or down", 2, [this] { return UpOrDown(); }},
            {"restart", 1, [this] { return Restart(); }}};
  }

  void Check() {
    instances_.Settle();
    ASSERT_EQ(instances_.Called(), reference_.Called(instances_));
  }

 private:
  std::string SomeName() {
    return std::string(1, static_cast<char>('a' + luck_.Below(4)));
  }

  std::string UpOrDown() {
    const std::string name = SomeName();
    instances_.At(name).SetListening(!instances_.At(name).listening());
    return name + (instances_.At(name).listening() ? " is up" : " is down");
  }

  std::string ComeOrGo() {
    const std::string name = SomeName();
    const auto found = reference_.Find(name);
    if (found != reference_.known.end()) {
      reference_.known.erase(found);
      instances_.Deregister(name);
      return name + " is gone";
    }
    clock_ += luck_.Chance(50) ? 1 : 0;  // Some come within one tick.
    TakeIn({name, clock_, 0});
    return name + " comes";
  }

  /// All are found again, in any order.
  void Restart() {
    auto known = std::exchange(reference_.known, {});
    std::shuffle(known.begin(), known.end(), luck_);
    instances_.Start();
    for (const auto& each : known) TakeIn(each);
  }

  void TakeIn(Reference::Known known) {
    instances_.Register(known.name, known.born);
    known.registered = ++registrations_;
    reference_.known.push_back(std::move(known));
  }

  Luck& luck_;
  Instances instances_;
  Reference reference_;
  std::int64_t clock_ = 0;
  int registrations_ = 0;
};

// Any order of coming, connecting, hanging up and leaving, managers that start
// again in the middle of it included.
TEST(InstancesTest, TheNewestThatListensIsAlwaysCalled) {
  LiveEach({20'260, 50}, [](Luck& luck) {
    RandomWalk walk(luck);
    TakeSteps(60, luck, walk.Steps(), [&] { walk.Check(); });
  });
}

}  // namespace
}  // namespace devmgr::dra
