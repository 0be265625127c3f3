// SPDX-License-Identifier: Apache-2.0
#include "model/drivers.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "devmgr/wire/dra/v1alpha2/dra.pb.h"
#include "model/objects.h"

namespace devmgr::model {
namespace {

// The messages of v1alpha1 are those of v1alpha2 as far as they matter here.
namespace old_wire = wire::dra::v1alpha2;
namespace wire = wire::dra::v1;
using Manner = Drivers::Manner;

constexpr std::string_view kMannerNames[Drivers::kManners] = {
    "honest", "hangs",    "refuses",   "fails calls", "half",
    "skips",  "confuses", "bad names", "garbage",     "repeats",
    "fickle", "bare",     "too many"};

void Say(const Drivers::Devices& devices,
         wire::NodePrepareResourceResponse* answer) {
  for (const state::PreparedDevice& device : devices) {
    wire::Device* said = answer->add_devices();
    for (const auto& request : device.request_names) {
      said->add_request_names(request);
    }
    said->set_pool_name(device.pool);
    said->set_device_name(device.device);
    for (const auto& id : device.cdi_device_ids) said->add_cdi_device_ids(id);
  }
}

/// May anybody believe what a driver of this manner says of a claim?
bool IsValid(Manner manner, bool first, bool last) {
  switch (manner) {
    case Manner::kRefuses:
    case Manner::kFailsCalls:
    case Manner::kConfuses:
    case Manner::kGarbage:
      return false;
    case Manner::kSkips:
      return !last;
    case Manner::kBadNames:
    case Manner::kTooMany:
      return !first;
    default:
      return true;
  }
}

}  // namespace

class Drivers::Line final : public rpc::Connection {
 public:
  Line(Drivers& drivers, std::string driver, std::string known,
       std::function<void()> on_hang_up)
      : drivers_(drivers),
        driver_(std::move(driver)),
        known_(std::move(known)),
        on_hang_up_(std::move(on_hang_up)) {
    drivers_.lines_.push_back(this);
  }
  ~Line() override {
    std::erase(drivers_.lines_, this);
    EndCalls(absl::CancelledError("connection closed"));
  }

  CallId Call(const std::string& method, std::string request,
              CallOptions options, rpc::CallDone done) override {
    return drivers_.Take(this, driver_, method, request, options.timeout,
                         std::move(done));
  }
  CallId Stream(const std::string&, std::string, CallOptions,
                rpc::StreamEvents) override {
    return 0;  // DRA has none.
  }
  void ReadNext(CallId) override {}
  std::uint64_t Arrived(CallId) override { return 0; }
  void Cancel(CallId call) override {
    drivers_.EndWithoutAnswer(call, absl::CancelledError("cancelled"));
  }
  const rpc::PeerCredentials& peer() const override { return credentials_; }
  bool over() const override { return over_; }

  const std::string& driver() const { return driver_; }
  /// The beginning of the methods that the instance has.
  const std::string& known() const { return known_; }

  void HangUp() {
    over_ = true;
    EndCalls(absl::UnavailableError("socket closed"));
    on_hang_up_();
  }

 private:
  void EndCalls(const absl::Status& status) {
    std::vector<std::uint64_t> ids;
    for (const Drivers::Call& call : drivers_.calls_) {
      if (call.line == this) ids.push_back(call.id);
    }
    for (const auto id : ids) drivers_.EndWithoutAnswer(id, status);
  }

  Drivers& drivers_;
  const std::string driver_;
  const std::string known_;
  const std::function<void()> on_hang_up_;
  const rpc::PeerCredentials credentials_;
  bool over_ = false;
};

Drivers::Drivers(Witness witness) : witness_(std::move(witness)) {
  for (const std::string& name : kDrivers) drivers_[name];
}

std::string_view Drivers::MannerName(Manner manner) {
  return kMannerNames[static_cast<std::size_t>(manner)];
}

std::string Drivers::Endpoint(const std::string& driver, std::size_t endpoint) {
  return fmt::format("/plugins/{}/{}.sock", driver, endpoint);
}

absl::StatusOr<std::unique_ptr<rpc::Connection>> Drivers::Dial(
    const std::filesystem::path& socket, std::function<void()> on_hang_up) {
  const std::string name = socket.parent_path().filename().string();
  if (!drivers_.at(name).listens) {
    return UnavailableError("nobody listens at '{}'", socket.string());
  }
  static const std::string kKnown[kEndpoints] = {
      "/k8s.io.kubelet.pkg.apis.dra.v1.",
      "/k8s.io.kubelet.pkg.apis.dra.v1beta1.", "/v1alpha3.", "/v1alpha2.",
      "/v1alpha1."};
  const std::size_t endpoint = std::stoul(socket.stem().string());
  return std::make_unique<Line>(*this, name, kKnown[endpoint],
                                std::move(on_hang_up));
}

void Drivers::Behave(const std::string& driver, Manner manner) {
  drivers_.at(driver).manner = manner;
}

void Drivers::HangUp(const std::string& driver, bool listen) {
  drivers_.at(driver).listens = listen;
  const std::vector<Line*> lines = lines_;
  for (Line* line : lines) {
    if (line->driver() == driver && !line->over()) line->HangUp();
  }
}

void Drivers::Forget() {
  for (auto& [name, driver] : drivers_) {
    driver.prepared.clear();
    driver.said.clear();
  }
}

std::uint64_t Drivers::Take(Line* line, const std::string& driver,
                            const std::string& method,
                            const std::string& request,
                            std::chrono::milliseconds timeout,
                            rpc::CallDone done) {
  // Only whether it is there.
  const bool is_probe = request.empty();
  if (is_probe && drivers_.at(driver).manner != Manner::kHangs) {
    done(std::string());
    return 0;
  }
  Call call;
  call.id = ++calls_made_;
  call.line = line;
  call.driver = driver;
  call.prepare = method.find("NodePrepare") != std::string::npos;
  call.known = method.starts_with(line->known());
  call.old =
      method.starts_with("/v1alpha2.") || method.starts_with("/v1alpha1.");
  if (call.old && !is_probe) {
    old_wire::NodePrepareResourceRequest asked;
    asked.ParseFromString(request);
    call.claims.push_back(asked.claim_uid());
  } else if (!is_probe) {
    wire::NodePrepareResourcesRequest asked;  // both requests look the same
    asked.ParseFromString(request);
    for (const auto& claim : asked.claims()) call.claims.push_back(claim.uid());
  }
  call.done = std::move(done);
  call.timer = executor_->PostAfter(timeout, [this, id = call.id] {
    EndWithoutAnswer(id, DeadlineExceededError("deadline exceeded"));
  });
  if (!is_probe) witness_.on_call(call.prepare, driver, call.claims);
  calls_.push_back(std::move(call));
  return calls_.back().id;
}

Drivers::Call Drivers::Remove(std::uint64_t id) {
  const auto found =
      std::find_if(calls_.begin(), calls_.end(),
                   [id](const Call& call) { return call.id == id; });
  if (found == calls_.end()) return {};
  Call call = std::move(*found);
  calls_.erase(found);
  if (executor_ != nullptr) executor_->Cancel(call.timer);
  return call;
}

void Drivers::EndWithoutAnswer(std::uint64_t id, const absl::Status& status) {
  const Call call = Remove(id);
  if (!call.done) return;
  if (luck_.Chance(50)) Carry(call).IgnoreError();
  call.done(status);
}

bool Drivers::Answer(std::size_t place) {
  if (calls_.empty()) return false;
  const Call& chosen = calls_[place % calls_.size()];
  if (drivers_.at(chosen.driver).manner == Manner::kHangs) return false;
  const Call call = Remove(chosen.id);
  call.done(Carry(call));
  return true;
}

bool Drivers::AnswerAll() {
  bool any = false;
  for (std::size_t i = 0; i < calls_.size();) {
    if (Answer(i)) {
      any = true;
    } else {
      ++i;
    }
  }
  return any;
}

bool Drivers::IsAsked(const std::string& driver,
                      const std::string& claim) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
    return call.driver == driver &&
           std::find(call.claims.begin(), call.claims.end(), claim) !=
               call.claims.end();
  });
}

bool Drivers::Said(const std::string& driver, const std::string& claim,
                   const Devices& devices) const {
  const auto& said = drivers_.at(driver).said;
  const auto found = said.find(claim);
  return found != said.end() &&
         std::find(found->second.begin(), found->second.end(), devices) !=
             found->second.end();
}

absl::StatusOr<std::string> Drivers::Carry(const Call& call) {
  Driver& driver = drivers_.at(call.driver);
  if (!call.known) return UnimplementedError("unknown method");
  if (call.claims.empty()) return std::string();
  if (call.old) return CarryOld(driver, call);
  return call.prepare ? CarryPrepare(driver, call)
                      : CarryUnprepare(driver, call);
}

/// What the claim gets: made up when it is prepared for the first time.
const Drivers::Devices& Drivers::DoPrepare(Driver& driver, const Call& call,
                                           const std::string& claim) {
  const auto [entry, fresh] = driver.prepared.try_emplace(claim);
  if (!fresh && driver.manner != Manner::kFickle) return entry->second;
  entry->second.clear();
  if (driver.manner == Manner::kBare) return entry->second;
  static const std::vector<std::vector<std::string>> kRequests = {
      {"r"}, {"s/small", "r"}, {}, {"s"}};
  const int count = 1 + devices_made_ % 2;
  for (int i = 0; i < count; ++i) {
    const int number = ++devices_made_;
    state::PreparedDevice device;
    device.request_names = kRequests[static_cast<std::size_t>(number) % 4];
    device.pool = "pool-1";
    device.device = fmt::format("dev-{}", number);
    device.cdi_device_ids = {fmt::format("{}/x={}", call.driver, number)};
    if (number % 3 == 0) {
      device.cdi_device_ids.push_back(call.driver + "/x=common");
    }
    entry->second.push_back(std::move(device));
  }
  return entry->second;
}

void Drivers::DoUnprepare(Driver& driver, const Call& call,
                          const std::string& claim) {
  witness_.on_unprepare(call.driver, claim);
  driver.prepared.erase(claim);
  driver.said.erase(claim);
}

absl::StatusOr<std::string> Drivers::CarryOld(Driver& driver,
                                              const Call& call) {
  const Manner manner = driver.manner;
  const std::string& claim = call.claims.front();
  if (manner == Manner::kGarbage) {
    return std::string("\xff\xff\xff\xff and more of it");
  }
  const bool refuses =
      manner == Manner::kFailsCalls || !IsValid(manner, true, true);
  if (refuses && luck_.Chance(50)) return absl::UnknownError("no");
  old_wire::NodePrepareResourceResponse response;
  if (call.prepare) {
    for (const auto& device : DoPrepare(driver, call, claim)) {
      for (const auto& id : device.cdi_device_ids) response.add_cdi_devices(id);
    }
  } else {
    DoUnprepare(driver, call, claim);
  }
  if (manner == Manner::kFailsCalls) {
    return MakeStatus(static_cast<absl::StatusCode>(1 + luck_.Below(16)), "no");
  }
  if (refuses) return absl::UnknownError("the device is busy");
  if (!call.prepare) return std::string();
  Devices said;
  if (!response.cdi_devices().empty()) {
    said.emplace_back().cdi_device_ids.assign(response.cdi_devices().begin(),
                                              response.cdi_devices().end());
  }
  driver.said[claim].push_back(std::move(said));
  return response.SerializeAsString();
}

absl::StatusOr<std::string> Drivers::CarryPrepare(Driver& driver,
                                                  const Call& call) {
  const Manner manner = driver.manner;
  const bool idle = manner == Manner::kRefuses || manner == Manner::kFailsCalls
                        ? luck_.Chance(50)
                        : manner == Manner::kGarbage;
  wire::NodePrepareResourcesResponse response;
  auto& answers = *response.mutable_claims();
  for (const std::string& claim : call.claims) {
    const bool first = claim == call.claims.front();
    if (manner == Manner::kHalf && !first) {
      answers[claim].set_error("only one at a time");
      continue;
    }
    if (idle) continue;
    Devices devices = DoPrepare(driver, call, claim);
    if (manner == Manner::kRepeats) {
      const Devices twice = devices;
      devices.insert(devices.end(), twice.begin(), twice.end());
    }
    Say(devices, &answers[claim]);
    if (IsValid(manner, first, claim == call.claims.back())) {
      driver.said[claim].push_back(std::move(devices));
    }
  }
  switch (manner) {
    case Manner::kRefuses:
      for (const std::string& claim : call.claims) {
        answers[claim].set_error("the device is busy");
      }
      break;
    case Manner::kFailsCalls:
      return MakeStatus(static_cast<absl::StatusCode>(1 + luck_.Below(16)),
                        "no");
    case Manner::kSkips:
      answers.erase(call.claims.back());
      break;
    case Manner::kConfuses:
      answers["u-of-another-node"];
      break;
    case Manner::kBadNames:
      Say({{{}, "pool-1", "dev-0", {"no name"}, ""}},
          &answers[call.claims.front()]);
      break;
    case Manner::kGarbage:
      return std::string("\xff\xff\xff\xff and more of it");
    case Manner::kTooMany:
      Say(Devices(300, {{}, "pool-1", "dev-0", {}, ""}),
          &answers[call.claims.front()]);
      break;
    default:
      break;
  }
  return response.SerializeAsString();
}

absl::StatusOr<std::string> Drivers::CarryUnprepare(Driver& driver,
                                                    const Call& call) {
  const Manner manner = driver.manner;
  const bool idle = manner == Manner::kRefuses || manner == Manner::kFailsCalls
                        ? luck_.Chance(50)
                        : manner == Manner::kGarbage;
  wire::NodeUnprepareResourcesResponse response;
  auto& answers = *response.mutable_claims();
  for (const std::string& claim : call.claims) {
    const bool first = claim == call.claims.front();
    if (manner == Manner::kHalf && !first) {
      answers[claim].set_error("only one at a time");
      continue;
    }
    if (!idle) DoUnprepare(driver, call, claim);
    answers[claim];
    if (manner == Manner::kRefuses) answers[claim].set_error("still busy");
  }
  switch (manner) {
    case Manner::kFailsCalls:
      return MakeStatus(static_cast<absl::StatusCode>(1 + luck_.Below(16)),
                        "no");
    case Manner::kSkips:
      answers.erase(call.claims.back());
      break;
    case Manner::kConfuses:
      answers["u-of-another-node"];
      break;
    case Manner::kGarbage:
      return std::string("\xff\xff\xff\xff and more of it");
    default:
      break;
  }
  return response.SerializeAsString();
}

}  // namespace devmgr::model
