// SPDX-License-Identifier: Apache-2.0
#include "manager/outage_node.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/status.h"
#include "manager/manager.h"
#include "manager/manager_fixture.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;

/// Most lives have the same objects.
const ObjectSnapshot& CachedSnapshotOf(const std::string& yaml) {
  static auto& known = *new std::map<std::string, ObjectSnapshot>();
  const auto found = known.find(yaml);
  if (found != known.end()) return found->second;
  return known.emplace(yaml, SnapshotOf(yaml)).first->second;
}

bool IsReboot(Outage outage) {
  return outage == Outage::kPowerLost || outage == Outage::kPowerLostWithAll;
}

std::string BootId(int boots) { return fmt::format("boot-{}", boots); }

}  // namespace

std::string_view OutageName(Outage outage) {
  switch (outage) {
    case Outage::kKilled:
      return "the process is killed";
    case Outage::kKilledLate:
      return "the process is killed, drivers go on";
    case Outage::kPowerLost:
      return "the power is lost";
    case Outage::kPowerLostWithAll:
      return "the power is lost, and drivers' memory with it";
    case Outage::kWriteFails:
      return "a write fails";
    case Outage::kWriteFailsLate:
      return "a write fails late";
  }
  return "";
}

/// A manager's hold on the disk, as long as its life lasts.
class OutageNode::Store final : public checkpoint::LedgerStore {
 public:
  explicit Store(OutageNode& node) : node_(node) {}

  absl::StatusOr<state::State> Load() override { return node_.store_->Load(); }

  absl::Status Append(std::span<const state::Batch> batches) override {
    node_.Moment();
    if (node_.over_.has_value()) return Gone();
    const Fault fault = std::exchange(node_.fault_, Fault::kNone);
    if (fault == Fault::kLost) return UnavailableError("input/output error");
    DEVMGR_RETURN_IF_ERROR(node_.store_->Append(batches));
    for (const state::Batch& batch : batches) node_.OnBatch(batch);
    node_.Moment();
    if (node_.over_.has_value()) return Gone();
    return fault == Fault::kNone ? absl::OkStatus()
                                 : UnavailableError("input/output error, late");
  }

  absl::StatusOr<state::State> Reopen() override {
    if (node_.over_.has_value()) return Gone();
    return node_.store_->Load();
  }

  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    return node_.store_->History(after, most);
  }

 private:
  static absl::Status Gone() { return UnavailableError("the process is gone"); }

  OutageNode& node_;
};

/// The drivers as one manager has them.
class OutageNode::Far final : public dra::Drivers {
 public:
  explicit Far(OutageNode& node) : node_(node) {}
  ~Far() override {
    node_.calls_.clear();
    node_.on_change_ = nullptr;
  }

  bool IsRegistered(const std::string& driver) const override {
    return node_.conduct_.at(driver).prepare != Manner::kGone;
  }
  bool IsConnected(const std::string& driver) const override {
    return IsRegistered(driver);
  }
  void Prepare(const std::string& driver,
               std::vector<dra::ClaimReference> claims,
               std::function<void(dra::PrepareAnswer)> done) override {
    node_.calls_.push_back(
        {true, driver, std::move(claims),
         [driver, done](const std::map<ClaimUid, absl::Status>& statuses) {
           dra::PrepareAnswer answer;
           for (const auto& [uid, status] : statuses) {
             if (!status.ok()) {
               answer.emplace(uid, status);
               continue;
             }
             answer.emplace(uid, std::vector<state::PreparedDevice>{
                                     {{},
                                      "pool-1",
                                      "dev-1",
                                      {driver + "/x=" + uid.value},
                                      ""}});
           }
           done(std::move(answer));
         }});
    node_.CheckCall(node_.calls_.back());
  }
  void Unprepare(const std::string& driver,
                 std::vector<dra::ClaimReference> claims,
                 std::function<void(dra::UnprepareAnswer)> done) override {
    node_.calls_.push_back({false, driver, std::move(claims), std::move(done)});
    node_.CheckCall(node_.calls_.back());
  }
  std::vector<std::shared_ptr<const PluginInfo>> Plugins() const override {
    return {};
  }

 private:
  OutageNode& node_;
};

OutageNode::OutageNode(std::vector<std::string> drivers,
                       DeviceManagerOptions options, Outages outages,
                       std::uint32_t seed, std::unique_ptr<OutageDisk> disk)
    : drivers_(std::move(drivers)),
      options_(std::move(options)),
      outages_(std::move(outages)),
      disk_(disk != nullptr ? std::move(disk) : std::make_unique<OutageDisk>()),
      store_(disk_->Open()) {
  if (seed != 0) luck_.emplace(seed);
  for (const std::string& driver : drivers_) conduct_[driver] = {};
  Start();
}

OutageNode::~OutageNode() {
  over_ = Outage::kKilled;  // Nothing more gets to the disk.
  manager_.reset();
}

void OutageNode::Start() {
  auto loop = std::make_unique<ManualExecutor>();
  auto ledger = std::make_unique<ManualExecutor>();
  loop_ = loop.get();
  ledger_loop_ = ledger.get();
  manager::ManagerParts parts;
  parts.options = options_;
  parts.options.actuate = Actuate::kSource;
  parts.host.objects = &source_;
  parts.host.boot_id = [this] { return BootId(boots_); };
  parts.host.now = [this, executor = loop_] {
    return WallTime(clock_ + std::chrono::duration_cast<milliseconds>(
                                 executor->Now().time_since_epoch()));
  };
  parts.state = *store_->Load();
  parts.store = std::make_unique<Store>(*this);
  parts.drivers = [this](Executor&, auto on_change) {
    on_change_ = std::move(on_change);
    return std::make_unique<Far>(*this);
  };
  parts.executor = std::move(loop);
  parts.ledger_executor = std::move(ledger);
  manager_ = manager::Manager::Start(std::move(parts));
}

void OutageNode::Publish() {
  std::string yaml;
  for (const auto& [name, text] : claim_texts_) yaml += text;
  for (const auto& [name, text] : pod_texts_) yaml += text;
  source_.Publish(CachedSnapshotOf(yaml));
}

void OutageNode::WantClaim(const std::string& name,
                           const std::vector<std::string>& from,
                           const std::vector<std::string>& pods,
                           const std::string& uid) {
  std::vector<std::string> uids;
  for (const std::string& pod : pods) uids.push_back("u-" + pod);
  claim_texts_[name] =
      ClaimYaml(name, uid.empty() ? "u-" + name : uid, from, uids);
  Publish();
}

void OutageNode::WantPod(const std::string& name,
                         const std::vector<std::string>& claims) {
  pod_texts_[name] = PodYaml(name, "u-" + name, claims);
  dropped_.erase(PodUid{"u-" + name});
  gone_.erase(PodUid{"u-" + name});
  Publish();
}

void OutageNode::Drop(const std::string& pod) {
  if (pod_texts_.erase(pod) > 0) dropped_.insert(PodUid{"u-" + pod});
  answers_.erase(PodUid{"u-" + pod});
  Publish();
}

void OutageNode::DropClaim(const std::string& name) {
  claim_texts_.erase(name);
  Publish();
}

void OutageNode::Behave(const std::string& driver, Conduct conduct) {
  const Conduct before = std::exchange(conduct_.at(driver), conduct);
  if ((before.prepare == Manner::kGone) == (conduct.prepare == Manner::kGone)) {
    return;
  }
  loop_->Post([this, driver] {
    if (on_change_) on_change_(driver);
  });
}

void OutageNode::ForceRelease(const std::string& claim) {
  manager_->maintenance().StartForceReleaseClaim(
      {"default", claim}, "the test says so",
      [this, claim](const absl::Status& status) {
        // Who hears of a failed write says it again. All else depends on how
        // far the node is: `until` tells.
        if (!absl::IsUnavailable(status)) return;
        loop_->PostAfter(milliseconds(1'000),
                         [this, claim] { ForceRelease(claim); });
      });
}

void OutageNode::Unprepare(const std::string& pod) {
  manager_->StartUnpreparePod(PodUid{"u-" + pod}, [](const absl::Status&) {});
}

void OutageNode::Moment() {
  if (over_.has_value()) return;
  const auto outage = outages_.find(++moments_);
  if (outage == outages_.end()) return;
  if (outage->second == Outage::kWriteFails) {
    fault_ = Fault::kLost;
  } else if (outage->second == Outage::kWriteFailsLate) {
    fault_ = Fault::kWritten;
  } else {
    over_ = outage->second;
    if (IsReboot(*over_)) disk_->LosePower();
  }
}

void OutageNode::OnBatch(const state::Batch& batch) {
  model::NoteGivenUp(ledger_, batch, &given_up_);
  EXPECT_TRUE(state::Apply(ledger_, batch).ok());
  EXPECT_THAT(state::CheckInvariants(ledger_, BootId(boots_)), IsEmpty())
      << "after decision " << batch.seq;
}

OutageNode::Manner OutageNode::MannerFor(const Call& call) const {
  const Conduct& conduct = conduct_.at(call.driver);
  if (call.prepare || conduct.prepare == Manner::kGone) return conduct.prepare;
  return conduct.unprepare;
}

std::map<ClaimUid, absl::Status> OutageNode::Carry(const Call& call) {
  std::map<ClaimUid, absl::Status> answer;
  const Manner manner = MannerFor(call);
  for (const dra::ClaimReference& claim : call.claims) {
    const std::string& uid = claim.uid.value;
    if (manner == Manner::kGone) {
      answer[claim.uid] =
          UnavailableError("DRA driver {} is not registered", call.driver);
      continue;
    }
    answer[claim.uid] = manner == Manner::kHonest
                            ? absl::OkStatus()
                            : UnavailableError("claim {}: it is on fire", uid);
    if (manner == Manner::kRefuses) continue;
    if (call.prepare) {
      books_[call.driver].insert(uid);
      // Else it was given up in the middle of the call.
      if (PhaseOf(uid, call.driver)) given_up_.erase({call.driver, uid});
    } else {
      // Asked before it was given up: the next pod waits for the call.
      if (!given_up_.contains({call.driver, uid})) {
        EXPECT_EQ(model::CheckUnprepare(ledger_, uid, BootId(boots_)), "");
      }
      books_[call.driver].erase(uid);
    }
  }
  return answer;
}

/// Its intent is on disk, or was given up there before the manager was told.
void OutageNode::CheckCall(const Call& call) const {
  if (over_.has_value()) return;  // It never gets there.
  for (const dra::ClaimReference& claim : call.claims) {
    if (!call.prepare && given_up_.contains({call.driver, claim.uid.value})) {
      continue;
    }
    EXPECT_EQ(
        model::CheckCall(ledger_, call.prepare, call.driver, claim.uid.value),
        "");
  }
}

std::vector<std::size_t> OutageNode::Answerable() const {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (!held_.contains(calls_[i].driver)) which.push_back(i);
  }
  return which;
}

void OutageNode::AnswerOne(std::size_t which) {
  Moment();
  if (over_.has_value()) return;
  const auto at = calls_.begin() + static_cast<std::ptrdiff_t>(which);
  const Call call = std::move(*at);
  calls_.erase(at);
  ++calls_made_;
  if (!call.prepare) {
    unprepared_cdi_ids_.clear();
    for (const dra::ClaimReference& claim : call.claims) {
      unprepared_cdi_ids_.insert(unprepared_cdi_ids_.end(),
                                 claim.cdi_device_ids.begin(),
                                 claim.cdi_device_ids.end());
    }
  }
  auto answer = Carry(call);
  Moment();
  if (over_.has_value()) return;
  loop_->Post([done = call.done, answer = std::move(answer)] { done(answer); });
}

bool OutageNode::Step() {
  if (over_.has_value()) return false;
  const auto answerable = Answerable();
  if (luck_.has_value() && !answerable.empty() && luck_->Chance(30)) {
    AnswerOne(answerable[luck_->Below(answerable.size())]);
    return true;
  }
  if (luck_.has_value() && luck_->Chance(50) && ledger_loop_->RunOne()) {
    return true;
  }
  if (loop_->RunOne() || ledger_loop_->RunOne()) return true;
  if (answerable.empty()) return false;
  AnswerOne(answerable.front());
  return true;
}

void OutageNode::Work() {
  constexpr int kMaxSteps = 100'000;
  for (int i = 0; i < kMaxSteps; ++i) {
    if (!Step()) return;
    if (!over_.has_value()) NoteAnswers();
  }
  ADD_FAILURE() << "work does not end\n" << Text();
}

void OutageNode::NoteAnswers() {
  for (const auto& [name, text] : pod_texts_) {
    const PodUid uid{"u-" + name};
    if (answers_.contains(uid)) continue;
    const auto answer = manager_->PodDevicesOf(uid);
    if (answer.ok()) answers_.emplace(uid, *answer);
  }
  for (const PodUid& uid : dropped_) {
    if (!manager_->View()->PodInfoOf(uid).ok()) gone_.insert(uid);
  }
}

bool OutageNode::Until(const std::string& what,
                       const std::function<bool()>& condition) {
  for (int round = 0; round < 300; ++round) {
    Work();
    if (over_.has_value()) return false;
    if (condition()) {
      CheckKnown();
      return true;
    }
    loop_->Advance(milliseconds(1'000));
  }
  ADD_FAILURE() << "never: " << what << "\n" << Text();
  return true;
}

void OutageNode::Recover() {
  const Outage outage = over_.value();
  const std::deque<Call> under_way = calls_;
  clock_ +=
      std::chrono::duration_cast<milliseconds>(loop_->Now().time_since_epoch());
  manager_.reset();
  store_ = nullptr;
  store_ = disk_->Open();
  if (outage == Outage::kKilledLate) {
    for (const Call& call : under_way) Carry(call);
  }
  if (IsReboot(outage)) ++boots_;
  if (outage == Outage::kPowerLostWithAll) books_.clear();
  over_.reset();
  CheckFound();
  if (IsReboot(outage)) answers_.clear();
  Start();
  for (const auto& [uid, answer] : answers_) {
    const auto now = manager_->PodDevicesOf(uid);
    EXPECT_TRUE(now.ok() && **now == *answer) << uid.value;
  }
}

void OutageNode::CheckFound() const {
  EXPECT_TRUE(*store_->Load() == ledger_);
  EXPECT_THAT(state::CheckInvariants(ledger_, BootId(boots_)), IsEmpty());
  CheckKnown();
  CheckKept();
}

/// Each claim is prepared, or intended to be, or owed: never unknown.
void OutageNode::CheckKnown() const {
  for (const auto& [driver, claims] : books_) {
    for (const std::string& uid : claims) {
      EXPECT_TRUE(PhaseOf(uid, driver).has_value() ||
                  given_up_.contains({driver, uid}))
          << driver << " holds " << uid << ", which nobody knows of";
    }
  }
  for (const auto& [uid, claim] : ledger_.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase != state::DriverPhase::kPrepared) continue;
      if (part.boot_id != BootId(boots_)) continue;
      EXPECT_TRUE(Holds(driver, uid.value))
          << driver << " does not hold " << uid.value << ", which is Prepared";
    }
  }
}

/// What was answered is on disk.
void OutageNode::CheckKept() const {
  for (const auto& [uid, answer] : answers_) {
    const state::PodRecord* pod = ledger_.FindPod(uid);
    ASSERT_NE(pod, nullptr) << uid.value;
    ASSERT_NE(pod->answer, nullptr) << uid.value;
    EXPECT_TRUE(*pod->answer == *answer) << uid.value;
  }
  for (const PodUid& uid : gone_) {
    EXPECT_EQ(ledger_.FindPod(uid), nullptr) << uid.value << " is back";
  }
}

bool OutageNode::Finish() {
  held_.clear();
  for (const std::string& driver : drivers_) Behave(driver, {});
  if (!Until("all pods are Ready", [this] {
        return std::all_of(pod_texts_.begin(), pod_texts_.end(),
                           [&](const auto& pod) { return IsReady(pod.first); });
      })) {
    return false;
  }
  pod_texts_.clear();
  claim_texts_.clear();
  answers_.clear();
  Publish();
  if (!Until("nothing is left", [this] {
        return ledger_.pods.empty() && ledger_.claims.empty();
      })) {
    return false;
  }
  for (const auto& [driver, claims] : books_) {
    for (const std::string& uid : claims) {
      EXPECT_TRUE(given_up_.contains({driver, uid}))
          << driver << " still holds " << uid;
    }
  }
  return true;
}

bool OutageNode::IsReady(const std::string& pod) const {
  return manager_->PodDevicesOf(PodUid{"u-" + pod}).ok();
}

bool OutageNode::IsGone(const std::string& pod) const {
  return !manager_->View()->PodInfoOf(PodUid{"u-" + pod}).ok();
}

std::optional<state::DriverPhase> OutageNode::PhaseOf(
    const std::string& claim_uid, const std::string& driver) const {
  const state::ClaimRecord* claim = ledger_.FindClaim(ClaimUid{claim_uid});
  if (claim == nullptr) return std::nullopt;
  const auto part = claim->drivers.find(driver);
  if (part == claim->drivers.end()) return std::nullopt;
  return part->second.phase;
}

bool OutageNode::Owes(const std::string& claim_uid,
                      const std::string& driver) const {
  return PhaseOf(claim_uid, driver) == state::DriverPhase::kUnpreparing &&
         ledger_.FindClaim(ClaimUid{claim_uid})
             ->drivers.at(driver)
             .debt.has_value();
}

bool OutageNode::Holds(const std::string& driver,
                       const std::string& claim_uid) const {
  const auto book = books_.find(driver);
  return book != books_.end() && book->second.contains(claim_uid);
}

std::string OutageNode::Text() const {
  std::string text;
  for (const PodInfo& pod : manager_->View()->Pods()) {
    text += fmt::format("pod {} {} {} {}\n", pod.name.name,
                        PodStateName(pod.state), pod.reason, pod.message);
  }
  for (const auto& [uid, claim] : ledger_.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      text += fmt::format("claim {} {} {}{}\n", uid.value, driver,
                          DriverPhaseName(part.phase),
                          part.debt.has_value() ? ", owed" : "");
    }
  }
  return text;
}

std::uint64_t Play(const OutageScenario& scenario, const Outages& outages,
                   std::uint32_t seed, std::unique_ptr<OutageDisk> disk) {
  OutageNode node(scenario.drivers, scenario.options, outages, seed,
                  std::move(disk));
  for (const OutageStep& step : scenario.steps) {
    for (;;) {
      step.act(node);
      if (node.Until(step.what, [&] { return step.until(node); })) break;
      node.Recover();
    }
    if (::testing::Test::HasFailure()) return node.moments();
  }
  while (!node.Finish()) node.Recover();
  return node.moments();
}

int PlayWithOutages(const OutageScenario& scenario, std::uint64_t stride) {
  SCOPED_TRACE(scenario.name);
  int lives = 0;
  const std::uint64_t moments = Play(scenario, {});
  for (std::uint64_t moment = 1; moment <= moments; ++moment) {
    for (std::size_t i = 0; i < kOutages; ++i) {
      if ((moment + i) % stride != 0) continue;
      const auto outage = static_cast<Outage>(i);
      SCOPED_TRACE(fmt::format("at moment {} of {}: {}", moment, moments,
                               OutageName(outage)));
      Play(scenario, {{moment, outage}});
      ++lives;
      if (::testing::Test::HasFailure()) return lives;
    }
  }
  return lives;
}

}  // namespace devmgr
