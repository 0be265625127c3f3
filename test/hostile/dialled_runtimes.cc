// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cri.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/status.h"
#include "hostile/dialled.h"

namespace devmgr::hostile {
namespace {

constexpr char kList[] = "/runtime.v1.RuntimeService/ListContainers";
constexpr char kVersion[] = "/runtime.v1.RuntimeService/Version";

/// Two CRI proxies, each before a runtime: one is hostile. A caller of each has
/// calls for it all the time, among them such as wait for the runtime.
class Runtimes final : public Dialled {
 public:
  Runtimes(rpc::Runtime& runtime, const std::filesystem::path& folder)
      : runtime_(runtime), folder_(folder) {
    good_ = Serve(folder / "good.sock", Misbehaviour::kRegistersInALoop);
    good_proxy_ = Proxy(folder / "good-proxy.sock", folder / "good.sock");
    good_caller_ = Caller(folder / "good-proxy.sock");
  }

  ~Runtimes() override {
    executor_->Stop();
    good_caller_.reset();
    bad_caller_.reset();
    good_proxy_.reset();
    bad_proxy_.reset();
  }

  std::unique_ptr<rpc::Server> Serve(const std::filesystem::path& socket,
                                     Misbehaviour misbehaviour) override {
    rpc::ServerOptions options;
    options.socket = socket;
    switch (misbehaviour) {
      case Misbehaviour::kServesOtherMethods:
        break;
      case Misbehaviour::kAnswersLate:
        options.methods[kList] = [this](const std::string& request,
                                        const rpc::Respond& respond) {
          executor_->PostAfter(kLate, [=] { respond(request); });
        };
        break;
      case Misbehaviour::kAnswersForAnother:
        options.methods[kList] = [](const std::string&,
                                    const rpc::Respond& respond) {
          respond(std::string(1'000, '\xff'));
        };
        break;
      case Misbehaviour::kRegistersInALoop:
      case Misbehaviour::kComesUnderOtherNames:
        options.methods[kList] = [](std::string request,
                                    const rpc::Respond& respond) {
          respond(std::move(request));
        };
        break;
      default:
        return nullptr;
    }
    return Start(std::move(options));
  }

  void Register(const std::filesystem::path& socket) override {
    const auto listen = folder_ / "bad-proxy.sock";
    bad_proxy_ = Proxy(listen, socket);
    bad_caller_ = Caller(listen);
    executor_->Post([this] { KeepCalling(); });
  }
  /// A runtime has no other names.
  void RegisterAgain(const std::filesystem::path&, rpc::Server& server,
                     int) override {
    EXPECT_TRUE(server.Relisten().ok());
  }

  void CallNeighbour(std::function<void(absl::Status)> done) override {
    good_caller_->Call(kList, "x", {std::chrono::seconds(20)},
                       [done](const absl::StatusOr<std::string>& answer) {
                         done(answer.status());
                       });
  }

  Bounds bounds(Misbehaviour) const override {
    Bounds bounds;
    // A caller of a CRI that calls again has the runtime dialled again: one for
    // each call, and those of a call that waits.
    bounds.dials = 140;
    return bounds;
  }

 private:
  static std::unique_ptr<CriProxy> Proxy(const std::filesystem::path& listen,
                                         const std::filesystem::path& backend) {
    CriProxyOptions options;
    options.listen = listen;
    options.backend = backend;
    auto proxy = CriProxy::Start(options);
    EXPECT_TRUE(proxy.ok()) << proxy.status();
    return proxy.ok() ? *std::move(proxy) : nullptr;
  }
  std::unique_ptr<rpc::Connection> Caller(const std::filesystem::path& socket) {
    auto caller = rpc::Dial(runtime_, socket, [] {});
    EXPECT_TRUE(caller.ok()) << caller.status();
    return caller.ok() ? *std::move(caller) : nullptr;
  }

  void KeepCalling() {
    ++costs_.calls;
    // One that was hung up on comes again, as CRI clients do.
    if (bad_caller_->over()) {
      bad_caller_.reset();
      bad_caller_ = Caller(folder_ / "bad-proxy.sock");
    }
    const char* method = costs_.calls % 10 == 0 ? kVersion : kList;
    bad_caller_->Call(method, "x", {kCallTimeout},
                      [](const absl::StatusOr<std::string>&) {});
    executor_->PostAfter(kBeat, [this] { KeepCalling(); });
  }

  rpc::Runtime& runtime_;
  const std::filesystem::path folder_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("runtimes");
  std::unique_ptr<rpc::Server> good_;
  std::unique_ptr<CriProxy> good_proxy_;
  std::unique_ptr<CriProxy> bad_proxy_;
  std::unique_ptr<rpc::Connection> good_caller_;
  std::unique_ptr<rpc::Connection> bad_caller_;
};

}  // namespace

std::unique_ptr<Dialled> DialledRuntimes(rpc::Runtime& runtime,
                                         const std::filesystem::path& folder) {
  return std::make_unique<Runtimes>(runtime, folder);
}

}  // namespace devmgr::hostile
