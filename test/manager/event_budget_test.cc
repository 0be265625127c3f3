// SPDX-License-Identifier: Apache-2.0
//
// Ten minutes of any single misbehaviour leave the events of others where they
// were, and are delivered at a bounded rate.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "events/event_log.h"
#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/manager.h"
#include "manager/manager_fixture.h"
#include "model/objects.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kEventsOfOthers = 900;
constexpr milliseconds kDuration = std::chrono::minutes(10);

/// A node on clocks that move when told. Drivers, plugins and objects are what
/// a misbehaviour makes of them.
class BudgetNode : private DeviceManagerObserver {
 public:
  BudgetNode() {
    auto loop = std::make_unique<ManualExecutor>();
    auto ledger = std::make_unique<ManualExecutor>();
    loop_ = loop.get();
    ledger_ = ledger.get();
    manager::ManagerParts parts;
    parts.host.objects = &source_;
    parts.host.boot_id = [] { return std::string("boot-1"); };
    parts.host.now = [this] {
      return WallTime(std::chrono::duration_cast<WallTime::duration>(
          loop_->Now().time_since_epoch() + std::chrono::hours(1)));
    };
    parts.store = store_.Open();
    parts.state = store_.Load();
    parts.drivers = [this](Executor& executor, auto on_change) {
      return drivers.Make(executor, std::move(on_change));
    };
    parts.plugins = [this](Executor& executor,
                           plugin::PluginListener& to_tell) {
      listener = &to_tell;
      return plugins.Make(executor, to_tell);
    };
    parts.executor = std::move(loop);
    parts.ledger_executor = std::move(ledger);
    parts.options.actuate = Actuate::kSource;
    parts.host.observers = {this};
    manager_ = manager::Manager::Start(std::move(parts));
    std::string text;
    for (std::size_t i = 0; i < kEventsOfOthers; ++i) {
      text += DevicePod(fmt::format("other-{}", i), {});
    }
    others_ = SnapshotOf(text);
    Publish("");
    Work();
  }
  ~BudgetNode() override { manager_.reset(); }

  /// These, beside the pods that have long been prepared.
  void Publish(const std::string& yaml) {
    ObjectSnapshot snapshot = others_;
    const DecodedManifest decoded = DecodeManifest(yaml, "more.yaml");
    const ObjectSnapshot more =
        decoded.malformed_pods.empty() ? SnapshotOf(yaml) : ObjectSnapshot();
    for (const auto& [name, pod] : more.pods) snapshot.pods.emplace(name, pod);
    for (const auto& [name, claim] : more.claims) {
      snapshot.claims.emplace(name, claim);
    }
    for (const MalformedPod& pod : decoded.malformed_pods) {
      snapshot.malformed_pods.insert_or_assign(
          pod.pod.metadata.FullName(),
          std::make_shared<const MalformedPod>(pod));
    }
    snapshot.problems = problems;
    source_.Publish(std::move(snapshot));
  }

  void Work() {
    while (loop_->RunPending() + ledger_->RunPending() > 0) {
    }
  }
  void Advance(milliseconds time) {
    loop_->Advance(time);
    Work();
  }

  std::size_t EventsOfOthers() const {
    std::set<std::string> names;
    for (const EventInfo& event : manager_->Events(0)) {
      if (event.object.name.starts_with("other-")) {
        names.insert(event.object.name);
      }
    }
    return names.size();
  }
  /// Without those of pods that come to be prepared, which would be there
  /// without it.
  std::size_t EventsOfMisbehaviour() const {
    std::size_t count = 0;
    for (const EventInfo& event : manager_->Events(0)) {
      const bool is_usual = event.reason == "Prepared";
      if (!event.object.name.starts_with("other-") && !is_usual) ++count;
    }
    return count;
  }
  std::size_t UsualEvents() const {
    std::size_t count = 0;
    for (const EventInfo& event : manager_->Events(0)) {
      if (event.reason == "Prepared") ++count;
    }
    return count;
  }

  /// What of it is kept, for people.
  std::string Reasons() const {
    std::map<std::string, int> counts;
    for (const EventInfo& event : manager_->Events(0)) {
      if (event.object.name.starts_with("other-")) continue;
      ++counts[fmt::format("{} of {}{}", event.reason, event.object_kind,
                           event.warning ? ", a warning" : "")];
    }
    std::string text;
    for (const auto& [reason, count] : counts) {
      text += fmt::format("{} x {}\n", count, reason);
    }
    return text;
  }

  /// The shim at `listen` tells of ten events, each of an object of its own.
  void Report(const std::string& listen, int round, const std::string& reason,
              const std::string& kind) {
    RuntimeReport report;
    report.session = listen;
    report.listen = listen;
    for (int i = 0; i < 10; ++i) {
      const int number = round * 10 + i;
      EventInfo event;
      event.sequence = static_cast<std::uint64_t>(number) + 1;
      event.warning = true;
      event.reason = reason;
      event.object_kind = kind;
      event.object = {"default", fmt::format("o-{}", number)};
      event.message = fmt::format("text {}", number);
      report.events.push_back(event);
    }
    // Beyond a number of shims it is refused, which is fine.
    static_cast<void>(manager_->ReportRuntime(report));
  }

  FakeDrivers drivers;
  FakePlugins plugins;
  plugin::PluginListener* listener = nullptr;
  std::vector<ManifestProblem> problems;
  std::size_t delivered = 0;

 private:
  void OnEvent(const EventInfo&) override { ++delivered; }

  SharedStore store_;
  model::DirectSource source_;
  ManualExecutor* loop_ = nullptr;
  ManualExecutor* ledger_ = nullptr;
  std::unique_ptr<DeviceManager> manager_;
  ObjectSnapshot others_;
};

struct Misbehaviour {
  std::string name;
  milliseconds period;
  std::function<void(BudgetNode&, int round)> act;
};
void PrintTo(const Misbehaviour& misbehaviour, std::ostream* out) {
  *out << misbehaviour.name;
}

std::string ManyPods(int count, const std::string& name) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string pod = fmt::format("{}-{}", name, i);
    text += ClaimYaml("c-" + pod, "u-c-" + pod, {kDriver}, {"u-" + pod}) +
            PodYaml(pod, "u-" + pod, {"c-" + pod});
  }
  return text;
}

void PluginComesAndGoes(BudgetNode& node, const std::string& resource,
                        int round, const std::string& why) {
  const auto generation = static_cast<plugin::Generation>(round) + 1;
  node.listener->OnConnected(resource, generation, {});
  node.listener->OnList(resource, generation, HealthyDevices(2), {});
  node.listener->OnGone(resource, generation, why);
}

const Misbehaviour kMisbehaviours[] = {
    {"APluginComesAndGoes", milliseconds(50),
     [](BudgetNode& node, int round) {
       PluginComesAndGoes(node, kGpu, round, "hung up");
     }},
    {"APluginGoesWithEverOtherWords", milliseconds(50),
     [](BudgetNode& node, int round) {
       PluginComesAndGoes(node, kGpu, round, fmt::format("error {}", round));
     }},
    {"APluginComesUnderEverNewNames", milliseconds(250),
     [](BudgetNode& node, int round) {
       PluginComesAndGoes(node, fmt::format("example.com/gpu-{}", round), round,
                          "hung up");
     }},
    {"APluginListsWhatCannotBe", milliseconds(50),
     [](BudgetNode& node, int round) {
       if (round == 0) node.listener->OnConnected(kGpu, 1, {});
       std::vector<device::Device> devices = HealthyDevices(4);
       devices.push_back({fmt::format("twice-{}", round)});
       devices.push_back(devices.back());
       plugin::ListProblems problems;
       problems.Add("device {} has no ID", round);
       node.listener->OnList(kGpu, 1, std::move(devices), problems);
     }},
    {"ADriverComesAndGoes", milliseconds(50),
     [](BudgetNode& node, int round) {
       round % 2 == 0 ? node.drivers.Register(kDriver)
                      : node.drivers.Deregister(kDriver);
     }},
    {"ADriverComesUnderEverNewNames", milliseconds(250),
     [](BudgetNode& node, int round) {
       const std::string name = fmt::format("d{}.example.com", round);
       node.drivers.Register(name);
       node.Work();
       node.drivers.Deregister(name);
     }},
    {"ADriverLosesItsHealthStream", milliseconds(50),
     [](BudgetNode& node, int round) {
       if (round == 0) node.drivers.Register(kDriver);
       node.drivers.LoseHealth(kDriver);
     }},
    {"ADriverFailsAllItsPodsWithEverOtherWords", milliseconds(1'000),
     [](BudgetNode& node, int round) {
       if (round > 0) return;
       node.drivers.Answer(
           kDriver, [tries = 0](bool, const dra::ClaimReference&) mutable {
             return UnavailableError("error {}", ++tries);
           });
       node.drivers.Register(kDriver);
       node.Publish(ManyPods(120, "p"));
     }},
    {"ManifestsHaveEverOtherProblems", milliseconds(2'000),
     [](BudgetNode& node, int round) {
       node.problems.clear();
       for (int i = 0; i < 10; ++i) {
         node.problems.push_back({fmt::format("/m/{}-{}.yaml", round, i), 1, "",
                                  fmt::format("error {}", round)});
       }
       node.Publish("");
     }},
    {"PodsComeAndGoUnderEverNewNames", milliseconds(2'000),
     [](BudgetNode& node, int round) {
       node.Publish(DevicePod(fmt::format("short-{}", round), {}));
     }},
    {"APluginFailsAllItsPodsWithEverOtherWords", milliseconds(1'000),
     [](BudgetNode& node, int round) {
       if (round == 0) {
         node.plugins.Serve(kGpu, 200);
         node.plugins.Answer(kGpu,
                             [tries = 0](const std::vector<DeviceId>&) mutable
                             -> absl::StatusOr<device::ContainerEdits> {
                               return UnavailableError("error {}", ++tries);
                             });
         std::string text;
         for (int i = 0; i < 40; ++i) {
           text += DevicePod(fmt::format("p-{}", i), {{kGpu, 1}});
         }
         node.Publish(text);
       }
     }},
    {"APluginFlipsTheHealthOfWhatPodsHold", milliseconds(1'000),
     [](BudgetNode& node, int round) {
       if (round == 0) {
         node.plugins.Serve(kGpu, 30);
         std::string text;
         for (int i = 0; i < 30; ++i) {
           text += DevicePod(fmt::format("p-{}", i), {{kGpu, 1}});
         }
         node.Publish(text);
         return;
       }
       std::vector<device::Device> devices = HealthyDevices(30);
       for (device::Device& device : devices) {
         if (round % 2 == 0) device.health = device::Health::kUnhealthy;
       }
       node.plugins.Report(kGpu, std::move(devices));
     }},
    {"AShimReportsWithoutEnd", milliseconds(500),
     [](BudgetNode& node, int round) {
       node.Report("/run/cri.sock", round, "ContainerInjected", "Container");
     }},
    {"AShimReportsPodsThatAreNone", milliseconds(500),
     [](BudgetNode& node, int round) {
       node.Report("/run/cri.sock", round, "ContainerInjected", "Pod");
     }},
    {"ShimsComeUnderEverNewNames", milliseconds(500),
     [](BudgetNode& node, int round) {
       node.Report(fmt::format("/run/cri-{}.sock", round), round, "ShimStarted",
                   "Node");
     }},
    {"PodsThatBreakRulesComeUnderEverNewNames", milliseconds(2'000),
     [](BudgetNode& node, int round) {
       node.Publish(DevicePod(fmt::format("bad-{}", round), {{kGpu, -1}}));
     }},
};

class EventBudgetTest : public ::testing::TestWithParam<Misbehaviour> {};

TEST_P(EventBudgetTest, TenMinutesOfItLeaveTheEventsOfOthers) {
  BudgetNode node;
  ASSERT_EQ(node.EventsOfOthers(), kEventsOfOthers);
  node.delivered = 0;
  const Misbehaviour& misbehaviour = GetParam();
  const int rounds = static_cast<int>(kDuration / misbehaviour.period);
  for (int round = 0; round < rounds; ++round) {
    misbehaviour.act(node, round);
    node.Work();
    node.Advance(misbehaviour.period);
  }
  EXPECT_GE(std::max(node.EventsOfOthers(), node.UsualEvents()),
            kEventsOfOthers)
      << node.Reasons();
  EXPECT_GT(node.EventsOfMisbehaviour(), 0u);
  EXPECT_LE(node.EventsOfMisbehaviour(), 100u);
  // At once, and after each pause what has come together; of two kinds.
  const auto pauses =
      static_cast<std::size_t>(kDuration / events::EventLog::kPause) + 1;
  EXPECT_LE(node.delivered, 2 * pauses * events::EventLog::kMostAtOnce);
}

INSTANTIATE_TEST_SUITE_P(Any, EventBudgetTest,
                         ::testing::ValuesIn(kMisbehaviours),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace devmgr
