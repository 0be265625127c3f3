// SPDX-License-Identifier: Apache-2.0
//
// A node on one thread, over a ledger and drivers that outlive it. At a moment
// of the test's choice its process is killed, its power goes off, or a write
// fails.
#pragma once

#include <devmgr/device_manager.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "common/executor.h"
#include "dra/claims.h"
#include "model/objects.h"
#include "model/reference.h"
#include "state/decision.h"
#include "state/state.h"
#include "support/luck.h"

namespace devmgr {

enum class Outage : std::uint8_t {
  kKilled,      ///< What drivers were asked and have not done is not done.
  kKilledLate,  ///< They do it when the process is gone.
  kPowerLost,   ///< Another boot; drivers have their books on disk.
  kPowerLostWithAll,  ///< Another boot; drivers have forgotten everything.
  kWriteFails,        ///< Only the next write: nothing of it is on disk.
  kWriteFailsLate,    ///< It is on disk, but its writer hears of an error.
};
inline constexpr std::size_t kOutages = 6;
std::string_view OutageName(Outage outage);

/// By the moment of a life before which it comes. Moments are: a call has
/// reached its driver; the driver has acted, and not answered yet; a write
/// begins; it is on disk, and nobody has been told.
using Outages = std::map<std::uint64_t, Outage>;

/// Where a node's ledger is. By default in memory, where each write is whole.
class OutageDisk {
 public:
  virtual ~OutageDisk() = default;
  /// For the next manager; the one before is gone.
  virtual std::shared_ptr<checkpoint::LedgerStore> Open() { return memory_; }
  /// What is not synced by now may be lost.
  virtual void LosePower() {}

 private:
  const std::shared_ptr<checkpoint::LedgerStore> memory_ =
      checkpoint::NewInMemoryStore();
};

/// The UID of claim `c1`, unless it is given another.
inline constexpr char kUidOfC1[] = "u-c1";

class OutageNode {
 public:
  /// How a driver takes calls.
  enum class Manner { kHonest, kRefuses, kActsAndFails, kGone };
  struct Conduct {
    Manner prepare = Manner::kHonest;
    Manner unprepare = Manner::kHonest;  ///< kGone counts in `prepare` only.
  };
  using Books = std::map<std::string, std::set<std::string>>;  ///< Claim UIDs.

  /// `seed` 0: all is done in order.
  OutageNode(std::vector<std::string> drivers, DeviceManagerOptions options,
             Outages outages, std::uint32_t seed,
             std::unique_ptr<OutageDisk> disk = nullptr);
  ~OutageNode();

  // What people and a control plane want. All of it may be said again.
  void WantClaim(const std::string& name, const std::vector<std::string>& from,
                 const std::vector<std::string>& pods,
                 const std::string& uid = "");
  void WantPod(const std::string& name, const std::vector<std::string>& claims);
  void Drop(const std::string& pod);
  void DropClaim(const std::string& name);
  void Behave(const std::string& driver, Conduct conduct);
  /// Calls of the driver stay as they are until it is let go.
  void Hold(const std::string& driver) { held_.insert(driver); }
  void Let(const std::string& driver) { held_.erase(driver); }
  void ForceRelease(const std::string& claim);
  /// Now, though a call to prepare may be under way.
  void Unprepare(const std::string& pod);

  /// Works, and lets time pass, until `condition` holds. False after an outage:
  /// then only Recover helps. A test fails if it never holds.
  bool Until(const std::string& what, const std::function<bool()>& condition);
  /// Starts again after an outage, and checks what is found.
  void Recover();
  /// Mends everything: all pods must become Ready. Then all objects go, and
  /// nothing may be left. False after an outage.
  bool Finish();

  bool IsReady(const std::string& pod) const;
  bool IsGone(const std::string& pod) const;
  /// Where the ledger has claim and driver; nothing: nowhere.
  std::optional<state::DriverPhase> PhaseOf(const std::string& claim_uid,
                                            const std::string& driver) const;
  bool Owes(const std::string& claim_uid, const std::string& driver) const;
  bool Holds(const std::string& driver, const std::string& claim_uid) const;
  /// How many calls wait for an answer.
  std::size_t waiting() const { return calls_.size(); }

  /// Of the claims in the unprepare call that was answered last.
  const std::vector<std::string>& unprepared_cdi_ids() const {
    return unprepared_cdi_ids_;
  }

  const state::State& ledger() const { return ledger_; }
  std::uint64_t moments() const { return moments_; }
  std::uint64_t calls() const { return calls_made_; }

 private:
  class Store;
  class Far;
  struct Call {
    bool prepare = true;
    std::string driver;
    std::vector<dra::ClaimReference> claims;
    std::function<void(std::map<ClaimUid, absl::Status>)> done;
  };

  void Start();
  void Publish();
  /// One thing that can be done now; false when there is none.
  bool Step();
  void Work();
  void Moment();
  void OnBatch(const state::Batch& batch);
  void AnswerOne(std::size_t which);
  std::vector<std::size_t> Answerable() const;
  void CheckCall(const Call& call) const;
  std::map<ClaimUid, absl::Status> Carry(const Call& call);
  Manner MannerFor(const Call& call) const;
  void NoteAnswers();

  // Checks. Each fails the test.
  void CheckFound() const;
  void CheckKnown() const;
  void CheckKept() const;
  std::string Text() const;

  const std::vector<std::string> drivers_;
  const DeviceManagerOptions options_;
  const Outages outages_;
  std::optional<Luck> luck_;
  const std::unique_ptr<OutageDisk> disk_;
  std::shared_ptr<checkpoint::LedgerStore> store_;
  model::DirectSource source_;
  std::map<std::string, std::string> claim_texts_;
  std::map<std::string, std::string> pod_texts_;
  int boots_ = 0;
  std::chrono::milliseconds clock_{std::chrono::hours(1)};

  state::State ledger_;  ///< The sum of all that is on disk.
  Books books_;          ///< The drivers' own.
  std::map<std::string, Conduct> conduct_;
  std::set<std::string> held_;
  /// Driver and claim that nobody waits for any more.
  model::GivenUp given_up_;
  /// What was answered for pods that are still wanted.
  std::map<PodUid, std::shared_ptr<const PodDevices>> answers_;
  std::set<PodUid> dropped_;  ///< Pods that are not wanted any more.
  std::set<PodUid> gone_;     ///< Those of them that were said to be gone.

  std::uint64_t moments_ = 0;
  std::uint64_t calls_made_ = 0;
  std::vector<std::string> unprepared_cdi_ids_;
  std::optional<Outage> over_;  ///< The outage that ended this life.
  enum class Fault { kNone, kLost, kWritten } fault_ = Fault::kNone;

  // Of one life.
  std::deque<Call> calls_;
  ManualExecutor* loop_ = nullptr;
  ManualExecutor* ledger_loop_ = nullptr;
  std::function<void(const std::string&)> on_change_;
  std::unique_ptr<DeviceManager> manager_;
};

/// One after the other: something is done, and then something has to come
/// about. After an outage a step begins again.
struct OutageStep {
  std::string what;
  std::function<void(OutageNode&)> act;
  std::function<bool(OutageNode&)> until;
};
struct OutageScenario {
  std::string name;
  std::vector<std::string> drivers;
  DeviceManagerOptions options;
  std::vector<OutageStep> steps;
};

/// Plays it to its end, and returns how many moments it had.
std::uint64_t Play(const OutageScenario& scenario, const Outages& outages,
                   std::uint32_t seed = 0,
                   std::unique_ptr<OutageDisk> disk = nullptr);

/// Plays it with each outage at every moment (of which only each `stride`th,
/// another one for each kind of outage). Returns how many lives that were.
int PlayWithOutages(const OutageScenario& scenario, std::uint64_t stride);

}  // namespace devmgr
