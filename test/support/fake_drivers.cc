// SPDX-License-Identifier: Apache-2.0
#include "support/fake_drivers.h"

#include <chrono>
#include <memory>
#include <utility>

#include "common/status.h"
#include "support/mailbox.h"

namespace devmgr {

using dra::ClaimReference;

/// What one manager sees. Completions go to its executor while it lives.
class FakeDriversView final : public dra::Drivers {
 public:
  FakeDriversView(FakeDrivers& fake, Executor& executor)
      : fake_(fake), executor_(executor) {}

  ~FakeDriversView() override {
    MutexLock lock(fake_.mutex_);
    fake_.on_change_ = nullptr;
    fake_.health_ = nullptr;
    for (auto& [name, driver] : fake_.drivers_) driver.waiting.clear();
  }

  bool IsRegistered(const std::string& driver) const override {
    MutexLock lock(fake_.mutex_);
    return fake_.drivers_[driver].registered;
  }

  bool IsConnected(const std::string& driver) const override {
    return IsRegistered(driver);
  }

  void Prepare(const std::string& driver, std::vector<ClaimReference> claims,
               std::function<void(dra::PrepareAnswer)> done) override {
    Call(true, driver, claims, [=, this] {
      dra::PrepareAnswer answer;
      for (const ClaimReference& claim : claims) {
        const absl::Status status = Judge(true, driver, claim);
        if (status.ok()) {
          answer.emplace(claim.uid, DevicesOf(driver, claim));
        } else {
          answer.emplace(claim.uid, status);
        }
      }
      done(std::move(answer));
    });
  }

  void Unprepare(const std::string& driver, std::vector<ClaimReference> claims,
                 std::function<void(dra::UnprepareAnswer)> done) override {
    Call(false, driver, claims, [=, this] {
      dra::UnprepareAnswer answer;
      for (const ClaimReference& claim : claims) {
        answer.emplace(claim.uid, Judge(false, driver, claim));
      }
      done(std::move(answer));
    });
  }

  std::vector<std::shared_ptr<const PluginInfo>> Plugins() const override {
    return {};
  }

  void WatchHealth(dra::HealthListener& listener) override {
    MutexLock lock(fake_.mutex_);
    fake_.health_ = [this, &listener](const FakeDrivers::Listening& what) {
      executor_.Post([&listener, what] { what(listener); });
    };
  }

 private:
  std::vector<state::PreparedDevice> DevicesOf(
      const std::string& driver, const ClaimReference& claim) const {
    MutexLock lock(fake_.mutex_);
    const auto told = fake_.devices_.find(claim.name.name);
    if (told != fake_.devices_.end()) return told->second;
    return {{{}, "pool-1", "dev-1", {driver + "/x=" + claim.name.name}, ""}};
  }

  void Call(bool prepare, const std::string& driver,
            const std::vector<ClaimReference>& claims, Task answer) {
    FakeDrivers::Call call{prepare, driver, {}};
    for (const ClaimReference& claim : claims) {
      call.claims.insert(claim.name.name);
    }
    {
      MutexLock lock(fake_.mutex_);
      if (fake_.drivers_[driver].registered) fake_.calls_.push_back(call);
      fake_.changed_.NotifyAll();
    }
    // What is posted may come after this has gone.
    fake_.Reply(driver, [this, answer = std::move(answer)] {
      executor_.Post([answer, alive = std::weak_ptr<bool>(alive_)] {
        if (!alive.expired()) answer();
      });
    });
  }

  absl::Status Judge(bool prepare, const std::string& driver,
                     const ClaimReference& claim) {
    FakeDrivers::Script script;
    {
      MutexLock lock(fake_.mutex_);
      FakeDrivers::Driver& known = fake_.drivers_[driver];
      if (!known.registered) {
        return UnavailableError("DRA driver {} is not registered", driver);
      }
      script = known.script;
    }
    const absl::Status status =
        script ? script(prepare, claim) : absl::OkStatus();
    if (!status.ok()) return status;
    MutexLock lock(fake_.mutex_);
    auto& prepared = fake_.drivers_[driver].prepared;
    if (prepare) {
      prepared.insert(claim.uid.value);
    } else {
      prepared.erase(claim.uid.value);
    }
    return status;
  }

  FakeDrivers& fake_;
  Executor& executor_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

void FakeDrivers::Register(const std::string& driver) {
  RegisterSilently(driver);
  Changed(driver);
}

void FakeDrivers::RegisterSilently(const std::string& driver) {
  MutexLock lock(mutex_);
  drivers_[driver].registered = true;
}

void FakeDrivers::Deregister(const std::string& driver) {
  {
    MutexLock lock(mutex_);
    drivers_[driver].registered = false;
  }
  Changed(driver);
}

void FakeDrivers::Changed(const std::string& driver) {
  MutexLock lock(mutex_);
  if (on_change_) on_change_(driver);
}

void FakeDrivers::Prepares(const std::string& claim,
                           std::vector<state::PreparedDevice> devices) {
  MutexLock lock(mutex_);
  devices_[claim] = std::move(devices);
}

void FakeDrivers::TellHealth(Listening what) {
  MutexLock lock(mutex_);
  if (health_) health_(std::move(what));
}

void FakeDrivers::ReportHealth(const std::string& driver,
                               std::vector<device::DeviceReport> report) {
  TellHealth([driver, report = std::move(report)](dra::HealthListener& to) {
    to.OnHealthReport(driver, report);
  });
}

void FakeDrivers::LoseHealth(const std::string& driver) {
  TellHealth([driver](dra::HealthListener& to) {
    to.OnHealthLost(driver, "the test says so");
  });
}

bool FakeDrivers::health_watched() const {
  MutexLock lock(mutex_);
  return health_ != nullptr;
}

void FakeDrivers::Answer(const std::string& driver, Script script) {
  MutexLock lock(mutex_);
  drivers_[driver].script = std::move(script);
}

void FakeDrivers::Hold(const std::string& driver) {
  MutexLock lock(mutex_);
  drivers_[driver].held = true;
}

void FakeDrivers::Let(const std::string& driver) {
  MutexLock lock(mutex_);
  drivers_[driver].held = false;
  for (Task& answer : std::exchange(drivers_[driver].waiting, {})) answer();
}

void FakeDrivers::Reply(const std::string& driver, Task answer) {
  MutexLock lock(mutex_);
  if (drivers_[driver].held) {
    drivers_[driver].waiting.push_back(std::move(answer));
  } else {
    answer();
  }
}

std::vector<FakeDrivers::Call> FakeDrivers::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

bool FakeDrivers::WaitForCalls(std::size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(mutex_);
  while (calls_.size() < count) {
    if (!changed_.WaitUntil(mutex_, deadline)) return false;
  }
  return true;
}

std::set<std::string> FakeDrivers::prepared(const std::string& driver) const {
  MutexLock lock(mutex_);
  const auto found = drivers_.find(driver);
  return found != drivers_.end() ? found->second.prepared
                                 : std::set<std::string>();
}

std::unique_ptr<dra::Drivers> FakeDrivers::Make(
    Executor& executor, std::function<void(const std::string&)> on_change) {
  {
    MutexLock lock(mutex_);
    on_change_ = std::move(on_change);
  }
  return std::make_unique<FakeDriversView>(*this, executor);
}

}  // namespace devmgr
