// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/executor.h"
#include "rpc/connection.h"
#include "state/records.h"
#include "support/luck.h"

namespace devmgr::model {

/// The far end of the drivers' sockets: drivers that prepare and unprepare
/// claims, keep their own record of it, and answer in bytes as they please.
/// They outlive managers. A call that ends without an answer (deadline,
/// hang-up, end of the manager) may have been carried out or not.
class Drivers {
 public:
  using Devices = std::vector<state::PreparedDevice>;

  /// How a driver answers.
  enum class Manner : std::uint8_t {
    kHonest,
    kHangs,       ///< Not at all.
    kRefuses,     ///< With an error for each claim; has acted or not.
    kFailsCalls,  ///< With an error of the whole call; has acted or not.
    kHalf,        ///< The first claim succeeds, the others do not.
    kSkips,       ///< The last claim is missing.
    kConfuses,    ///< One claim more than was asked for.
    kBadNames,    ///< With a CDI device ID that is none.
    kGarbage,     ///< With bytes that are no message.
    kRepeats,     ///< Honest, but says everything twice.
    kFickle,      ///< Honest, but with other devices each time.
    kBare,        ///< Honest, but without any device.
    kTooMany,     ///< With more devices than anybody may have.
  };
  static constexpr std::size_t kManners = 13;
  /// Instances, the newest API first. The last two know v1alpha2 and
  /// v1alpha1 alone, which have a call for each claim, and do not say so.
  static constexpr std::size_t kEndpoints = 5;

  /// Looks at what reaches the drivers. `what` fails the run.
  struct Witness {
    std::function<void(bool prepare, const std::string& driver,
                       const std::vector<std::string>& claims)>
        on_call;
    std::function<void(const std::string& driver, const std::string& claim)>
        on_unprepare;
  };
  explicit Drivers(Witness witness);

  /// Connects a manager: its executor, on which calls time out. Null: it is
  /// gone, and its calls end as `luck` has it.
  void Attach(Executor* executor) { executor_ = executor; }
  absl::StatusOr<std::unique_ptr<rpc::Connection>> Dial(
      const std::filesystem::path& socket, std::function<void()> on_hang_up);
  static std::string Endpoint(const std::string& driver, std::size_t endpoint);

  void Behave(const std::string& driver, Manner manner);
  Manner manner(const std::string& driver) const {
    return drivers_.at(driver).manner;
  }
  static std::string_view MannerName(Manner manner);
  /// Every connection of the driver ends. While it does not listen, dials fail.
  void HangUp(const std::string& driver, bool listen);
  void Listen(const std::string& driver) { drivers_[driver].listens = true; }
  /// Each driver forgets everything, as if it kept its record in memory.
  void Forget();

  /// Answers one call that waits, whatever its place. False: there is none, or
  /// its driver hangs.
  bool Answer(std::size_t call);
  /// Answers all but those of drivers that hang; false when there were none.
  bool AnswerAll();
  std::size_t waiting() const { return calls_.size(); }

  /// What happens to calls from now on that end without an answer.
  void set_luck(Luck luck) { luck_ = luck; }

  /// The driver's own record: what is prepared, by claim UID.
  const std::map<std::string, Devices>& prepared(
      const std::string& driver) const {
    return drivers_.at(driver).prepared;
  }
  /// Is a call for this claim under way?
  bool IsAsked(const std::string& driver, const std::string& claim) const;
  /// Did the driver say this of the claim, since it prepared it?
  bool Said(const std::string& driver, const std::string& claim,
            const Devices& devices) const;
  std::uint64_t calls_made() const { return calls_made_; }

 private:
  class Line;
  struct Driver {
    Manner manner = Manner::kHonest;
    bool listens = true;
    std::map<std::string, Devices> prepared;
    std::map<std::string, std::vector<Devices>> said;
  };
  struct Call {
    std::uint64_t id = 0;
    Line* line = nullptr;
    std::string driver;
    bool prepare = true;
    bool known = true;                ///< The instance has this method.
    bool old = false;                 ///< Of v1alpha2 or v1alpha1.
    std::vector<std::string> claims;  ///< UIDs.
    rpc::CallDone done;
    TimerId timer = 0;
  };

  std::uint64_t Take(Line* line, const std::string& driver,
                     const std::string& method, const std::string& request,
                     std::chrono::milliseconds timeout, rpc::CallDone done);
  /// Takes the call out; empty `done` when it is over already.
  Call Remove(std::uint64_t id);
  void EndWithoutAnswer(std::uint64_t id, const absl::Status& status);
  absl::StatusOr<std::string> Carry(const Call& call);
  /// What an honest or a bad driver of an old API makes of it.
  absl::StatusOr<std::string> CarryOld(Driver& driver, const Call& call);
  absl::StatusOr<std::string> CarryPrepare(Driver& driver, const Call& call);
  absl::StatusOr<std::string> CarryUnprepare(Driver& driver, const Call& call);
  const Devices& DoPrepare(Driver& driver, const Call& call,
                           const std::string& claim);
  void DoUnprepare(Driver& driver, const Call& call, const std::string& claim);

  const Witness witness_;
  Executor* executor_ = nullptr;
  std::map<std::string, Driver> drivers_;
  std::vector<Line*> lines_;  ///< In the order of their dials.
  std::deque<Call> calls_;
  Luck luck_{0};
  std::uint64_t calls_made_ = 0;
  int devices_made_ = 0;
};

}  // namespace devmgr::model
