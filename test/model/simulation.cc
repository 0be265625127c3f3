// SPDX-License-Identifier: Apache-2.0
#include "model/simulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "claim/release.h"
#include "common/status.h"
#include "manager/manager.h"

namespace devmgr::model {
namespace {

using Kind = Operation::Kind;
using std::chrono::milliseconds;

/// What instances announce, by endpoint.
constexpr std::array<std::string_view, Drivers::kEndpoints> kVersions = {
    "v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha3.NodeService", "1.0.0",
    "1.0.0"};

std::string DriverOf(std::uint32_t a) { return kDrivers[a % kDrivers.size()]; }

}  // namespace

Simulation::Simulation(Options options)
    : options_(std::move(options)),
      disk_([this](const state::Batch& batch, bool told) {
        OnBatch(batch, told);
      }),
      drivers_({[this](bool prepare, const std::string& driver,
                       const std::vector<std::string>& claims) {
                  ++counts_.driver_calls;
                  for (const std::string& claim : claims) {
                    // Given up a moment ago.
                    if (rules_.given_up.contains({driver, claim})) continue;
                    Complain("every call has its intent on disk",
                             CheckCall(ledger_, prepare, driver, claim));
                    if (drivers_.IsAsked(driver, claim)) {
                      Complain(
                          "one call at a time",
                          fmt::format("driver {}, claim {}", driver, claim));
                    }
                  }
                },
                [this](const std::string& driver, const std::string& claim) {
                  // Asked before it was given up: the next pod waits for it.
                  if (rules_.given_up.contains({driver, claim})) return;
                  Complain("no claim is unprepared under a pod",
                           CheckUnprepare(ledger_, claim, boot_id_));
                }}) {
  Start(disk_.Load());
}

Simulation::~Simulation() { Stop(true); }

std::optional<Failure> Simulation::Run(
    const std::vector<Operation>& operations) {
  for (step_ = 0; step_ < operations.size() && !failure_; ++step_) {
    const Operation& operation = operations[step_];
    drivers_.set_luck(Luck(operation.b));
    story_.push_back(fmt::format("{} {}: ", step_, KindName(operation.kind)));
    story_.back() += Do(operation);
    CheckAlways();
  }
  if (failure_.has_value()) TellTheEnd();
  return failure_;
}

std::string Simulation::Do(const Operation& operation) {
  if (operation.kind <= Kind::kScan) return DoObject(operation);
  if (operation.kind <= Kind::kAnswer) return DoDriver(operation);
  if (operation.kind <= Kind::kFailReopen) {
    if (operation.kind == Kind::kFailReopen) {
      const bool gone = operation.a % 6 == 0;
      disk_.FailReopen(gone);
      return gone ? "the disk cannot be opened" : "the disk can be opened";
    }
    const bool lost = operation.a % 2 == 0;
    disk_.FailNext(lost ? Disk::Failure::kLost : Disk::Failure::kWritten);
    return lost ? "the next write is lost" : "the next write fails late";
  }
  if (operation.kind <= Kind::kCancel) return DoEmbedder(operation);
  if (operation.kind <= Kind::kAdvance) return DoOrder(operation);
  return DoLife(operation);
}

std::string Simulation::DoObject(const Operation& operation) {
  const std::size_t which = operation.a;
  const Luck luck(operation.b);
  std::string text;
  switch (operation.kind) {
    case Kind::kPublishPod:
      text = objects_.PublishPod(which, luck);
      break;
    case Kind::kChangePod:
      text = objects_.ChangePod(which, luck);
      break;
    case Kind::kWithdrawPod:
      text = objects_.WithdrawPod(which);
      break;
    case Kind::kPublishClaim:
      text = objects_.PublishClaim(which, luck);
      break;
    case Kind::kReallocateClaim:
      text = objects_.ReallocateClaim(which, luck);
      break;
    case Kind::kReserveClaim:
      text = objects_.ReserveClaim(which, luck);
      break;
    case Kind::kWithdrawClaim:
      text = objects_.WithdrawClaim(which);
      break;
    default:
      text = objects_.Scan(luck);
  }
  Publish();
  return text;
}

registration::Plugin Simulation::PluginAt(const std::string& driver,
                                          std::size_t endpoint) const {
  registration::Plugin plugin = {
      dra::DriverRegistry::kPluginType,
      driver,
      Drivers::Endpoint(driver, endpoint),
      {std::string(kVersions[endpoint % kVersions.size()])},
      "/registry/" + driver};
  plugin.registration = endpoint;
  return plugin;
}

void Simulation::Register(const std::string& driver, std::size_t endpoint) {
  if (!life_.registered.emplace(driver, endpoint).second) return;
  life_.registry->Register(PluginAt(driver, endpoint)).IgnoreError();
}

std::string Simulation::DoDriver(const Operation& operation) {
  const std::string driver = DriverOf(operation.a);
  const std::size_t endpoint =
      operation.b % 4 == 0 ? operation.b / 4 % Drivers::kEndpoints : 0;
  Luck luck(operation.b);
  switch (operation.kind) {
    case Kind::kRegister:
      drivers_.Listen(driver);
      Register(driver, endpoint);
      return fmt::format("driver {} registers ({})", driver, endpoint);
    case Kind::kDeregister:
      if (life_.registered.erase({driver, endpoint}) > 0) {
        life_.registry->Deregister(PluginAt(driver, endpoint));
      }
      return fmt::format("driver {} deregisters ({})", driver, endpoint);
    case Kind::kHangUp: {
      const bool listen = luck.Chance(50);
      drivers_.HangUp(driver, listen);
      return fmt::format("driver {} hangs up{}", driver,
                         listen ? "" : " and is away");
    }
    case Kind::kRoll:
      return Roll(driver, luck);
    case Kind::kBehave: {
      const auto manner =
          luck.Chance(50)
              ? Drivers::Manner::kHonest
              : static_cast<Drivers::Manner>(luck.Below(Drivers::kManners));
      drivers_.Behave(driver, manner);
      return fmt::format("driver {} is: {}", driver,
                         Drivers::MannerName(manner));
    }
    default:
      return drivers_.Answer(operation.a) ? "a call is answered" : "no answer";
  }
}

/// The UID of a pod that the ledger or the source knows, or of none.
std::string Simulation::PickPod(std::uint32_t a) const {
  std::vector<std::string> uids = {"u-nobody"};
  for (const auto& [uid, pod] : ledger_.pods) uids.push_back(uid.value);
  for (const auto& [name, pod] : objects_.pods()) {
    uids.push_back(pod->metadata.uid);
  }
  return uids[a % uids.size()];
}

template <typename Operate>
void Simulation::Begin(Operate operate) {
  auto started = std::make_shared<Started>();
  started_.push_back(started);
  started->id = operate([started](const auto&) { ++started->done; });
}

std::string Simulation::DoEmbedder(const Operation& operation) {
  DeviceManager& manager = *life_.manager;
  const std::string uid = PickPod(operation.a);
  switch (operation.kind) {
    case Kind::kAdmit: {
      const auto objects = manager.Objects();
      if (objects->pods.empty()) return "admit nobody";
      auto pod = objects->pods.begin();
      std::advance(pod, operation.a % objects->pods.size());
      taken_.insert(pod->second->metadata.uid);
      judged_.insert(pod->second->metadata.uid);
      Begin(
          [&](auto done) { return manager.StartAdmitPod(*pod->second, done); });
      return "admit " + pod->second->metadata.uid;
    }
    case Kind::kPrepare:
      taken_.insert(uid);
      judged_.insert(uid);
      Begin([&](auto done) {
        return manager.StartPreparePod(PodUid{uid}, done);
      });
      return "prepare " + uid;
    case Kind::kUnprepare:
      taken_.insert(uid);
      dropped_.insert(uid);
      Begin([&](auto done) {
        return manager.StartUnpreparePod(PodUid{uid}, done);
      });
      return "unprepare " + uid;
    case Kind::kRelease:
      taken_.insert(uid);
      dropped_.insert(uid);
      Begin([&](auto done) {
        return manager.StartReleasePod(PodUid{uid}, done);
      });
      return "release " + uid;
    case Kind::kEnd:
      taken_.insert(uid);
      dropped_.insert(uid);
      Begin([&](auto done) { return manager.StartEndPod(PodUid{uid}, done); });
      return "end " + uid;
    case Kind::kForce: {
      if (ledger_.claims.empty()) return "force nothing";
      auto claim = ledger_.claims.begin();
      std::advance(claim, operation.a % ledger_.claims.size());
      const ObjectName name = claim->second->name;
      Begin([&](auto done) {
        manager.maintenance().StartForceReleaseClaim(name, "the model says so",
                                                     done);
        return OperationId{0};  // It cannot be cancelled.
      });
      return "force claim " + name.name;
    }
    default: {
      if (started_.empty()) return "cancel nothing";
      const auto& chosen = started_[operation.a % started_.size()];
      manager.Cancel(chosen->id);
      return fmt::format("cancel operation {}", chosen->id);
    }
  }
}

std::string Simulation::DoOrder(const Operation& operation) {
  static constexpr milliseconds kTimes[] = {
      milliseconds(10), milliseconds(200), milliseconds(1'000),
      milliseconds(4'000), milliseconds(15'000)};
  switch (operation.kind) {
    case Kind::kRunLoop: {
      std::uint32_t ran = 0;
      while (ran <= operation.a % 8 && life_.loop->RunOne()) ++ran;
      return fmt::format("{} tasks", ran);
    }
    case Kind::kRunLedger:
      return life_.ledger->RunOne() ? "the ledger writes" : "nothing to write";
    case Kind::kSettle:
      Settle(operation.a % 2 == 0);
      // A write that failed is tried again later.
      if (disk_.failures() > 0) break;
      Complain("who needs nothing is not delayed",
               CheckUndemanding(ledger_, objects_, boot_id_, dropped_, rules_));
      break;
    default: {
      const milliseconds time = kTimes[operation.a % std::size(kTimes)];
      life_.loop->Advance(time);
      return fmt::format("{} ms pass", time.count());
    }
  }
  return fmt::format("{} calls stay open", drivers_.waiting());
}

std::string Simulation::DoLife(const Operation& operation) {
  Luck luck(operation.b);
  const bool kill = operation.kind == Kind::kKill || luck.Chance(50);
  if (operation.kind == Kind::kHeal) {
    Heal();
    return "all is well";
  }
  if (operation.kind == Kind::kDrain) {
    Drain();
    return "all is gone";
  }
  const std::string config = Configure(luck);
  switch (operation.kind) {
    case Kind::kReopen:
      Stop(kill);
      Start(Reopen());
      break;
    case Kind::kReboot:
      Stop(kill);
      boot_id_ = fmt::format("boot-{}", ++boots_);
      if (luck.Chance(50)) drivers_.Forget();
      Start(disk_.Load());
      break;
    case Kind::kRestart:
      Restart(false);
      break;
    default:
      Restart(true);
  }
  for (const std::string& driver : kDrivers) {
    if (luck.Chance(80)) Register(driver, 0);
  }
  return fmt::format("after decision {}, in {}{}", ledger_.seq, boot_id_,
                     config);
}

std::string Simulation::Configure(Luck& luck) {
  if (luck.Chance(30)) return "";
  std::string text;
  debt_policies_.clear();
  for (const std::string& driver : kDrivers) {
    const auto kind = static_cast<DebtPolicy::Kind>(luck.Below(3));
    DebtPolicy policy{kind, milliseconds(0)};
    if (kind == DebtPolicy::Kind::kForgive) {
      policy.forgive_after = milliseconds(1'000 * (1 + luck.Below(30)));
    }
    debt_policies_[driver] = policy;
    text += fmt::format(", {} {}", driver, claim::DebtPolicyText(policy));
  }
  rules_.extended_resources = luck.Chance(60);
  if (!rules_.extended_resources) text += ", no extended resources";
  return text;
}

/// As in a rolling update: the new instance comes before the old one goes, or,
/// if it is a bad one, afterwards.
std::string Simulation::Roll(const std::string& driver, Luck& luck) {
  std::size_t old = 0;
  while (old < Drivers::kEndpoints &&
         !life_.registered.contains({driver, old})) {
    ++old;
  }
  const std::size_t next = (old + 1) % Drivers::kEndpoints;
  const bool first = luck.Chance(70);
  drivers_.Listen(driver);
  if (first) Register(driver, next);
  if (first && luck.Chance(50)) Settle(false);
  if (life_.registered.erase({driver, old}) > 0) {
    life_.registry->Deregister(PluginAt(driver, old));
  }
  if (!first) Register(driver, next);
  return fmt::format("driver {} goes from {} to {}", driver, old, next);
}

void Simulation::Start(const state::State& state) {
  ++counts_.managers;
  auto loop = std::make_unique<ManualExecutor>();
  auto ledger = std::make_unique<ManualExecutor>();
  life_.loop = loop.get();
  life_.ledger = ledger.get();
  drivers_.Attach(life_.loop);
  told_ = seen_ = ledger_;
  unseen_.clear();
  untold_.clear();
  manager::ManagerParts parts;
  parts.options.dra.max_calls = 3;
  parts.options.max_events = 50;
  parts.options.actuate = Actuate::kSource;
  parts.options.retries.last = milliseconds(8'000);
  parts.options.dra.debt_policies = debt_policies_;
  parts.options.feature_gates["DRAExtendedResource"] =
      rules_.extended_resources;
  parts.host.objects = &source_;
  parts.host.boot_id = [id = boot_id_] { return id; };
  parts.host.now = [this, loop = life_.loop] {
    return WallTime(clock_ + std::chrono::duration_cast<milliseconds>(
                                 loop->Now().time_since_epoch()));
  };
  parts.store = disk_.Open();
  parts.state = state;
  parts.drivers = [this, now = parts.host.now](
                      Executor& executor,
                      std::function<void(const std::string&)> on_change)
      -> std::unique_ptr<dra::Drivers> {
    dra::DriverRegistryOptions options;
    options.instance = {milliseconds(10'000), 3};
    options.api.compat = true;
    options.now = now;
    options.on_change = std::move(on_change);
    auto registry = std::make_unique<dra::DriverRegistry>(
        executor,
        [this](const auto& socket, auto on_hang_up) {
          return drivers_.Dial(socket, std::move(on_hang_up));
        },
        std::move(options));
    life_.registry = registry.get();
    if (!options_.saboteur) return registry;
    return options_.saboteur(std::move(registry));
  };
  parts.executor = std::move(loop);
  parts.ledger_executor = std::move(ledger);
  life_.manager = manager::Manager::Start(std::move(parts));
}

void Simulation::Stop(bool kill) {
  if (kill) disk_.CutOff();
  life_.registered.clear();
  life_.registry = nullptr;
  clock_ += std::chrono::duration_cast<milliseconds>(
      life_.loop->Now().time_since_epoch());
  life_.manager.reset();
  for (const auto& started : started_) {
    if (started->done == 1) continue;
    Complain(
        "every operation ends once",
        fmt::format("operation {} ended {} times", started->id, started->done));
  }
  started_.clear();
  // The next actuator begins anew with what the ledger and the source say.
  dropped_.clear();
  judged_.clear();
}

state::State Simulation::Reopen() {
  if (options_.store_dir.empty()) return disk_.Load();
  ++counts_.reopened;
  auto loaded = disk_.LoadFrom(options_.store_dir);
  if (!loaded.ok()) {
    Complain("the store on disk opens", MessageOf(loaded.status()));
    return disk_.Load();
  }
  if (!(*loaded == ledger_)) {
    Complain("the store on disk is the sum of its decisions", "it is not");
  }
  return *std::move(loaded);
}

void Simulation::Settle(bool answers) {
  constexpr int kPatience = 100'000;
  for (int turn = 0; turn < kPatience; ++turn) {
    if (life_.loop->RunOne() || life_.ledger->RunOne()) continue;
    if (!answers || !drivers_.AnswerAll()) return;
  }
  Complain("work comes to an end", "it does not");
}

void Simulation::LetTimePass() {
  constexpr int kPatience = 400;  // Longer than any quarantine.
  for (int turn = 0; turn < kPatience; ++turn) {
    Settle(true);
    if (drivers_.waiting() == 0 && life_.loop->timers() == 0) return;
    life_.loop->Advance(milliseconds(2'000));
  }
  Complain("all comes to rest",
           fmt::format("{} calls, {} timers", drivers_.waiting(),
                       life_.loop->timers()));
}

void Simulation::EndEmbeddersPods() {
  // Has the ledger look at its disk again, if nobody else does.
  Begin([&](auto done) {
    return life_.manager->StartReleasePod(PodUid{"u-nobody"}, done);
  });
  LetTimePass();
  std::set<std::string> wanted;
  for (const auto& [name, pod] : life_.manager->Objects()->pods) {
    if (pod->status.phase != "Succeeded") wanted.insert(pod->metadata.uid);
  }
  for (const auto& [name, pod] : life_.manager->Objects()->malformed_pods) {
    wanted.insert(pod->pod.metadata.uid);
  }
  for (const std::string& uid : taken_) {
    const state::PodRecord* pod = ledger_.FindPod(PodUid{uid});
    if (pod == nullptr) continue;
    const bool half_gone =
        dropped_.contains(uid) && pod->phase == state::PodPhase::kReleasing;
    if (wanted.contains(uid) && !half_gone) continue;
    Begin([&](auto done) {
      return life_.manager->StartUnpreparePod(PodUid{uid}, done);
    });
    LetTimePass();
    Begin([&](auto done) {
      return life_.manager->StartReleasePod(PodUid{uid}, done);
    });
    LetTimePass();
  }
  taken_.clear();
}

void Simulation::RegisterAll() {
  for (const std::string& driver : kDrivers) {
    drivers_.Behave(driver, Drivers::Manner::kHonest);
    drivers_.Listen(driver);
    Register(driver, 0);
  }
}

void Simulation::Heal() {
  disk_.Mend();
  RegisterAll();
  objects_.ScanAll();
  Publish();
  LetTimePass();
  EndEmbeddersPods();
  LetTimePass();
  CheckRest();
}

void Simulation::Drain() {
  objects_.Clear();
  Publish();
  Heal();
  if (ledger_.pods.empty() && ledger_.claims.empty() &&
      ledger_.identities.empty()) {
    return;
  }
  Complain("nothing is left",
           fmt::format("{} pods, {} claims, {} identities", ledger_.pods.size(),
                       ledger_.claims.size(), ledger_.identities.size()));
}

}  // namespace devmgr::model
