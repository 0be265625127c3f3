// SPDX-License-Identifier: Apache-2.0
#include "testing/driver_journal.h"

#include <nlohmann/json.hpp>

#include "common/status.h"
#include "testing/scenario.h"

namespace devmgr::testing {
namespace {

using Json = nlohmann::ordered_json;

void Emit(const std::function<void(std::string_view)>& on_event,
          const Json& event) {
  if (!on_event) return;
  // Names come over the wire: what is not UTF-8 is replaced, never thrown at.
  on_event(event.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Json DevicesOf(const ClaimAnswer& answer) {
  Json devices = Json::array();
  for (const PreparedDevice& device : answer.devices) {
    Json item = {{"requests", device.requests},
                 {"pool", device.pool},
                 {"device", device.device},
                 {"cdiDevices", device.cdi_ids}};
    if (!device.share_id.empty()) item["shareID"] = device.share_id;
    devices.push_back(std::move(item));
  }
  return devices;
}

/// The refusal of a registration always has a text.
std::string ErrorOf(const RegistrationOutcome& outcome) {
  if (outcome.registered) return "";
  return outcome.error.empty() ? "refused without a reason" : outcome.error;
}

}  // namespace

std::string_view NameOf(ClaimMethod method) {
  return method == ClaimMethod::kPrepare ? "prepare" : "unprepare";
}

void DriverJournal::Serving(const std::string& driver, const std::string& pool,
                            int devices, const std::string& service,
                            const std::string& registration) {
  Emit(on_event_, {{"event", "serving"},
                   {"driver", driver},
                   {"pool", pool},
                   {"devices", devices},
                   {"service", service},
                   {"registration", registration}});
}

void DriverJournal::GetInfoCall() { Note("get-info"); }

void DriverJournal::Registration(const RegistrationOutcome& outcome) {
  const std::string error = ErrorOf(outcome);
  Note(error.empty() ? "registered" : "registration-refused", error);
  MutexLock lock(mutex_);
  ++registrations_;
  registration_error_ = error;
  changed_.NotifyAll();
}

void DriverJournal::ClaimCall(const DraApi& api, ClaimMethod method,
                              const std::vector<ClaimReference>& claims) {
  FakeDraDriver::Call call;
  call.method = NameOf(method);
  call.api = api.name;
  Json items = Json::array();
  for (const ClaimReference& claim : claims) {
    call.claims.push_back(claim.name.name);
    call.claim_uids.push_back(claim.uid);
    items.push_back({{"namespace", claim.name.ns},
                     {"name", claim.name.name},
                     {"uid", claim.uid}});
  }
  Emit(on_event_, {{"event", "call"},
                   {"method", call.method},
                   {"api", call.api},
                   {"claims", std::move(items)}});
  MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
  changed_.NotifyAll();
}

void DriverJournal::Answer(const DraApi& api, ClaimMethod method,
                           const std::vector<ClaimAnswer>& answers) {
  Json items = Json::array();
  for (const ClaimAnswer& answer : answers) {
    Json item = {{"uid", answer.uid}};
    if (!answer.error.empty()) {
      item["error"] = answer.error;
    } else if (method == ClaimMethod::kPrepare) {
      item["devices"] = DevicesOf(answer);
    }
    items.push_back(std::move(item));
  }
  Emit(on_event_, {{"event", "answer"},
                   {"method", std::string(NameOf(method))},
                   {"api", std::string(api.name)},
                   {"claims", std::move(items)}});
}

void DriverJournal::Failure(std::string_view method,
                            const absl::Status& status) {
  Emit(on_event_, {{"event", "answer"},
                   {"method", std::string(method)},
                   {"code", absl::StatusCodeToString(status.code())},
                   {"error", MessageOf(status)}});
}

void DriverJournal::Step(std::string_view method, const ScenarioStep& step) {
  Emit(on_event_, {{"event", "step"},
                   {"action", std::string(NameOf(step.action))},
                   {"method", std::string(method)},
                   {"claim", step.claim}});
}

void DriverJournal::Note(std::string_view event, std::string_view error) {
  Json json = {{"event", std::string(event)}};
  if (!error.empty()) json["error"] = std::string(error);
  Emit(on_event_, json);
}

std::vector<FakeDraDriver::Call> DriverJournal::Calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

bool DriverJournal::WaitForCalls(std::size_t count,
                                 std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (calls_.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return calls_.size() >= count;
  }
  return true;
}

bool DriverJournal::WaitForRegistrations(
    std::size_t count, std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  MutexLock lock(mutex_);
  while (registrations_ < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return registrations_ >= count;
  }
  return true;
}

std::string DriverJournal::LastRegistrationError() const {
  MutexLock lock(mutex_);
  return registration_error_;
}

}  // namespace devmgr::testing
