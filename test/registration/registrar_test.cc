// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <fstream>

#include "registration/registrar_fixture.h"

namespace devmgr::registration {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// DP-028
TEST_F(RegistrarTest, TakesAPluginInAndTellsIt) {
  RegisterPlugin();
  EXPECT_THAT(plugins_.dialed_, ElementsAre("p.sock"));
  EXPECT_THAT(plugins_.notified_, ElementsAre("p.sock: "));
  EXPECT_EQ(plugins_.open_, 0);  // the handshake is over
  EXPECT_EQ(executor_.timers(), 0u);
  EXPECT_THAT(log_, ElementsAre(AllOf(HasSubstr("'d'"), HasSubstr("/e.sock"))));
}

TEST_F(RegistrarTest, ShowsItsSocketsAndWhoIsTakenIn) {
  EXPECT_THAT(Sockets(), IsEmpty());
  handler_.slow_ = true;
  RegisterPlugin();
  const std::string path = (folder() / "p.sock").string();
  EXPECT_THAT(Sockets(), ElementsAre(RegistrationSocketInfo{path, false}));
  handler_.pending_();
  executor_.RunPending();
  EXPECT_THAT(Sockets(), ElementsAre(RegistrationSocketInfo{path, true}));
  EXPECT_EQ(registrar_->Sockets(), registrar_->Sockets());  // not made anew
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_THAT(Sockets(), IsEmpty());
}

TEST_F(RegistrarTest, LogsOnceThatPluginsMayComeUnnoticed) {
  for (const char* problem : {"", "no more watches", "no more watches", ""}) {
    registrar_->OnDirectoryEvent({EventKind::kRescan, "", problem});
  }
  EXPECT_THAT(log_, ElementsAre(HasSubstr("no more watches"),
                                HasSubstr("watched again")));
}

TEST_F(RegistrarTest, RepeatedHintsChangeNothing) {
  RegisterPlugin();
  Tell(EventKind::kAppeared, "p.sock");
  Tell(EventKind::kChanged, "p.sock");
  Tell(EventKind::kWriting, "p.sock");
  Tell(EventKind::kVanished, "p.sock");  // late: it is there again
  Tell(EventKind::kRescan);
  EXPECT_EQ(plugins_.dialed_.size(), 1u);
  EXPECT_EQ(handler_.deregistered_, 0);
}

// DP-032: the plugin hears of it when the handler is done, not before.
TEST_F(RegistrarTest, WaitsForTheHandler) {
  handler_.slow_ = true;
  RegisterPlugin();
  EXPECT_THAT(plugins_.notified_, IsEmpty());
  handler_.pending_();
  executor_.RunPending();
  EXPECT_THAT(plugins_.notified_, ElementsAre("p.sock: "));
}

TEST_F(RegistrarTest, ASocketThatGoesWhileTheHandlerWorksIsDeregistered) {
  handler_.slow_ = true;
  RegisterPlugin();
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_EQ(handler_.deregistered_, 1);
  handler_.pending_();
  executor_.RunPending();
  EXPECT_THAT(plugins_.notified_, IsEmpty());
}

// Two sockets of one plugin are two registrations, and each end names its own.
TEST_F(RegistrarTest, EachRegistrationHasAnIdentity) {
  RegisterPlugin();
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  RegisterPlugin();
  ASSERT_THAT(handler_.registrations_, SizeIs(2));
  EXPECT_NE(handler_.registrations_[0], handler_.registrations_[1]);
  EXPECT_THAT(handler_.ended_, ElementsAre(handler_.registrations_[0]));
}

// DP-038
TEST_F(RegistrarTest, AHandlerThatFailsLateIsAskedAgain) {
  handler_.slow_ = true;
  RegisterPlugin();
  handler_.register_ = UnavailableError("not yet");
  handler_.pending_();
  executor_.RunPending();
  EXPECT_THAT(plugins_.notified_,
              ElementsAre("p.sock: RegisterPlugin error -- plugin registration "
                          "failed with err: not yet"));
  handler_.register_ = absl::OkStatus();
  executor_.Advance(milliseconds(500));
  handler_.pending_();
  executor_.RunPending();
  EXPECT_EQ(plugins_.notified_.back(), "p.sock: ");
}

// DRA-018
TEST_F(RegistrarTest, AnEmptyEndpointMeansTheRegistrationSocket) {
  Plugin1().info = Info("d", "");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(handler_.registered_,
              ElementsAre("d at " + (folder() / "p.sock").string()));
}

// DRA-019, DP-036: as after the deadline of a call that hangs.
TEST_F(RegistrarTest, AFailingGetInfoIsTriedAgain) {
  Plugin1().info = UnavailableError("not yet");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(handler_.registered_, IsEmpty());
  EXPECT_THAT(plugins_.notified_, IsEmpty());
  EXPECT_THAT(log_, ElementsAre(AllOf(HasSubstr("GetInfo: not yet"),
                                      HasSubstr("500 ms"))));
  Plugin1().info = Info();
  executor_.Advance(milliseconds(499));
  EXPECT_THAT(handler_.registered_, IsEmpty());
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(RegistrarTest, AFailingDialIsTriedAgain) {
  Plugin1().dial = UnavailableError("nobody listens");
  Plugin1().info = Info();
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(log_, ElementsAre(AllOf(HasSubstr("'p.sock': "),
                                      HasSubstr(": nobody listens"))));
  Plugin1().dial = absl::OkStatus();
  executor_.Advance(milliseconds(500));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
}

TEST_F(RegistrarTest, TheBackOffDoublesTo2MinutesPerSocket) {
  Plugin1().dial = UnavailableError("nobody listens");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  std::size_t dials = 1;
  for (const int delay : {500, 1'000, 2'000, 4'000, 8'000, 16'000, 32'000,
                          64'000, 120'000, 120'000, 120'000}) {
    executor_.Advance(milliseconds(delay - 1));
    EXPECT_EQ(plugins_.dialed_.size(), dials) << delay;
    executor_.Advance(milliseconds(1));
    EXPECT_EQ(plugins_.dialed_.size(), ++dials) << delay;
  }
  // Another socket begins at the beginning.
  plugins_.At(folder() / "q.sock").dial = UnavailableError("nobody listens");
  MakeSocket("q.sock");
  Tell(EventKind::kAppeared, "q.sock");
  executor_.Advance(milliseconds(500));
  EXPECT_EQ(
      std::count(plugins_.dialed_.begin(), plugins_.dialed_.end(), "q.sock"),
      2);
}

TEST_F(RegistrarTest, ARecreatedSocketBeginsAnew) {
  Plugin1().dial = UnavailableError("nobody listens");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  executor_.Advance(milliseconds(500 + 1'000 + 2'000));
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_EQ(executor_.timers(), 0u);
  const std::size_t before = plugins_.dialed_.size();
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_EQ(plugins_.dialed_.size(), before + 1);
  executor_.Advance(milliseconds(500));
  EXPECT_EQ(plugins_.dialed_.size(), before + 2);
}

// DRA-020
TEST_F(RegistrarTest, SocketsThatAreThereAtStartAreFound) {
  RegisterPlugin();
  plugins_.At(folder() / "q.sock").info = Info("q", "/q.sock");
  MakeSocket("q.sock");
  handler_.registered_.clear();
  Start();
  EXPECT_THAT(handler_.registered_, IsEmpty());
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_,
              testing::UnorderedElementsAre("d at /e.sock", "q at /q.sock"));
}

// DP-022
TEST_F(RegistrarTest, PluginsComeAndGo) {
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    const std::string name = number + ".sock";
    plugins_.At(folder() / name).info = Info("d" + number);
    MakeSocket(name);
    Tell(EventKind::kAppeared, name);
    EXPECT_THAT(handler_.registered_,
                ElementsAre("d" + number + " at /e.sock"));
    fs::remove(folder() / name);
    Tell(EventKind::kVanished, name);
    EXPECT_THAT(handler_.registered_, IsEmpty());
  }
}

// DP-023, DP-024: found one by one, and all at a start.
TEST_F(RegistrarTest, SocketsOfOneNameAreAllTakenIn) {
  std::vector<std::string> all;
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    const std::string name = number + ".sock";
    plugins_.At(folder() / name).info = Info("d", "/" + number);
    MakeSocket(name);
    Tell(EventKind::kAppeared, name);
    all.push_back("d at /" + number);
  }
  EXPECT_THAT(handler_.registered_, testing::UnorderedElementsAreArray(all));
  handler_.registered_.clear();
  Start();
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_, testing::UnorderedElementsAreArray(all));
}

// So that of several instances of a driver the newest can be told.
TEST_F(RegistrarTest, TellsWhenASocketWasMade) {
  // Files that are made within one tick of the kernel's clock look the same.
  const auto make = [this](const std::string& name, std::int64_t after) {
    plugins_.At(folder() / name).info = Info(name, "/" + name);
    for (std::int64_t born = after; born <= after;) {
      fs::remove(folder() / name);
      MakeSocket(name);
      Tell(EventKind::kAppeared, name);
      ASSERT_TRUE(handler_.born_.contains(name));
      born = handler_.born_[name];
    }
  };
  make("b.sock", 0);
  make("a.sock", handler_.born_["b.sock"]);
  EXPECT_GT(handler_.born_["a.sock"], handler_.born_["b.sock"]);

  const auto before = handler_.born_;
  Start();
  Tell(EventKind::kRescan);
  EXPECT_EQ(handler_.born_, before);
}

TEST_F(RegistrarTest, TellsWhoListens) {
  RegisterPlugin();
  EXPECT_EQ(handler_.owner_, std::nullopt);
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  Plugin1().owner = 1000;
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_EQ(handler_.owner_, 1000u);
}

// DP-027
TEST_F(RegistrarTest, APlaceChangesItsPluginManyTimes) {
  for (int i = 0; i < 10; ++i) {
    const std::string name = "d" + std::to_string(i);
    Plugin1().info = Info(name);
    fs::remove(folder() / "p.sock");
    Tell(EventKind::kVanished, "p.sock");
    MakeSocket("p.sock");
    Tell(EventKind::kAppeared, "p.sock");
    EXPECT_THAT(handler_.registered_, ElementsAre(name + " at /e.sock"));
  }
  EXPECT_EQ(handler_.deregistered_, 9);
}

// A plugin that re-creates its socket in a loop had a handshake, a registration
// and its end each time, and so had all who watch them.
TEST_F(RegistrarTest, ASocketMadeAnewInALoopIsTakenInNowAndThen) {
  Plugin1().info = Info();
  for (int i = 0; i < 1'000; ++i) {
    MakeSocket(".new");
    fs::rename(folder() / ".new", folder() / "p.sock");
    Tell(EventKind::kAppeared, "p.sock");
    executor_.Advance(milliseconds(10));
  }
  EXPECT_LE(handler_.registrations_.size(), 30u);
  EXPECT_LE(log_.size(), 80u);
  EXPECT_THAT(log_, Contains(HasSubstr("again and again")));
  // It holds still.
  executor_.Advance(milliseconds(30'000));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
  EXPECT_EQ(executor_.timers(), 0u);
}

// DP-031
TEST_F(RegistrarTest, AnEmptyDirectoryMeansNothingToDo) {
  Tell(EventKind::kRescan);
  executor_.Advance(milliseconds(600'000));
  EXPECT_THAT(plugins_.dialed_, IsEmpty());
  EXPECT_THAT(handler_.registered_, IsEmpty());
  EXPECT_EQ(handler_.deregistered_, 0);
}

// DRA-021
TEST_F(RegistrarTest, APluginThatRestartsIsRegisteredAgain) {
  RegisterPlugin();
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_THAT(handler_.registered_, IsEmpty());
  EXPECT_EQ(handler_.deregistered_, 1);
  EXPECT_THAT(log_.back(), HasSubstr("'d' deregistered"));
  Plugin1().info = Info("d", "/new.sock");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /new.sock"));
}

// DRA-021, DP-030 when the hints of removal and creation came as one.
TEST_F(RegistrarTest, ASwappedSocketIsNoticedByItsIdentity) {
  RegisterPlugin();
  Plugin1().info = Info("d", "/new.sock");
  MakeSocket(".new");
  fs::rename(folder() / ".new", folder() / "p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_EQ(handler_.deregistered_, 1);
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /new.sock"));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("/e.sock"), HasSubstr("deregistered"),
                                HasSubstr("/new.sock")));
}

// DP-029
TEST_F(RegistrarTest, ARescanNoticesWhatIsGone) {
  RegisterPlugin();
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_, IsEmpty());
}

TEST_F(RegistrarTest, ARescanWithoutTheDirectoryDeregistersAll) {
  RegisterPlugin();
  fs::remove_all(folder());
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_, IsEmpty());
  fs::create_directory(folder());
  MakeSocket("p.sock");
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
}

TEST_F(RegistrarTest, ARefusalIsToldAndTriedAgain) {
  handler_.validate_ = InvalidArgumentError("no such name");
  Plugin1().info = Info();
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(plugins_.notified_, ElementsAre("p.sock: no such name"));
  EXPECT_THAT(handler_.registered_, IsEmpty());
  EXPECT_THAT(log_, ElementsAre(HasSubstr("refused: no such name")));
  handler_.validate_ = absl::OkStatus();
  executor_.Advance(milliseconds(500));
  EXPECT_THAT(plugins_.notified_,
              ElementsAre("p.sock: no such name", "p.sock: "));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
}

TEST_F(RegistrarTest, AFailingRegistrationIsToldAndTriedAgain) {
  handler_.register_ = FailedPreconditionError("already registered");
  Plugin1().info = Info();
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(plugins_.notified_,
              ElementsAre(AllOf(HasSubstr("RegisterPlugin error"),
                                HasSubstr("already registered"))));
  // What was not taken in is not let go of, either.
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_EQ(handler_.deregistered_, 0);
}

TEST_F(RegistrarTest, AnUnknownTypeIsToldAndTriedAgain) {
  Plugin1().info = Info();
  Plugin1().info->type = "CSIPlugin";
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(plugins_.notified_,
              ElementsAre(AllOf(
                  HasSubstr("no handler registered for plugin type: CSIPlugin"),
                  HasSubstr((folder() / "p.sock").string()))));
  EXPECT_EQ(executor_.timers(), 1u);
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_EQ(executor_.timers(), 0u);
  EXPECT_EQ(handler_.deregistered_, 0);
}

// DP-039
TEST_F(RegistrarTest, APluginThatCannotBeToldIsLetGoAndTriedAgain) {
  Plugin1().info = Info();
  Plugin1().notify = UnavailableError("went away");
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(plugins_.notified_, ElementsAre("p.sock: "));
  EXPECT_THAT(handler_.registered_, IsEmpty());
  EXPECT_EQ(handler_.deregistered_, 1);
  EXPECT_THAT(log_,
              ElementsAre(HasSubstr("NotifyRegistrationStatus: went away")));
  Plugin1().notify = absl::OkStatus();
  executor_.Advance(milliseconds(500));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
}

// DP-033
TEST_F(RegistrarTest, AnUnknownTypeIsTakenInOnceItIsKnown) {
  Plugin1().info = Info();
  Plugin1().info->type = "CSIPlugin";
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  executor_.Advance(milliseconds(500));
  executor_.Advance(milliseconds(999));
  EXPECT_EQ(plugins_.notified_.size(), 2u);
  Plugin1().info->type = kType;
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(plugins_.notified_.back(), "p.sock: ");
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
}

TEST_F(RegistrarTest, ASuccessStartsTheBackOffAnew) {
  Plugin1().dial = UnavailableError("nobody listens");
  Plugin1().info = Info();
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  executor_.Advance(milliseconds(500 + 1'000));
  Plugin1().dial = absl::OkStatus();
  executor_.Advance(milliseconds(2'000));
  EXPECT_THAT(handler_.registered_, ElementsAre("d at /e.sock"));
  executor_.Advance(milliseconds(600'000));
  EXPECT_EQ(plugins_.dialed_.size(), 4u);
}

// DP-025; DP-026 otherwise than at the kubelet: directories are ignored.
TEST_F(RegistrarTest, WhatIsNoSocketIsIgnored) {
  std::ofstream(folder() / "file.sock") << "text";
  fs::create_directory(folder() / "directory.sock");
  fs::create_symlink("nowhere", folder() / "dangling.sock");
  MakeSocket(".hidden.sock");
  Tell(EventKind::kRescan);
  for (const char* name : {"file.sock", "directory.sock", "dangling.sock",
                           ".hidden.sock", "missing.sock", "", "."}) {
    Tell(EventKind::kAppeared, name);
  }
  EXPECT_THAT(plugins_.dialed_, IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(RegistrarTest, ASocketReplacedByAFileIsDeregistered) {
  RegisterPlugin();
  fs::remove(folder() / "p.sock");
  std::ofstream(folder() / "p.sock") << "text";
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(handler_.registered_, IsEmpty());
}

TEST_F(RegistrarTest, ASocketThatGoesDuringTheHandshakeIsForgotten) {
  Plugin1().silent = true;
  MakeSocket("p.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_EQ(plugins_.open_, 1);
  fs::remove(folder() / "p.sock");
  Tell(EventKind::kVanished, "p.sock");
  EXPECT_EQ(plugins_.open_, 0);
  executor_.Advance(milliseconds(600'000));
  EXPECT_EQ(plugins_.dialed_.size(), 1u);
  EXPECT_THAT(log_, IsEmpty());
}

// The answer of the old socket is on its way when the new one is there.
TEST_F(RegistrarTest, AnAnswerOfAnOlderAttemptIsDropped) {
  Plugin1().info = Info("old", "/old.sock");
  MakeSocket("p.sock");
  registrar_->OnDirectoryEvent({EventKind::kAppeared, "p.sock"});
  MakeSocket(".new");
  fs::rename(folder() / ".new", folder() / "p.sock");
  Plugin1().info = Info("new", "/new.sock");
  Tell(EventKind::kAppeared, "p.sock");
  EXPECT_THAT(handler_.registered_, ElementsAre("new at /new.sock"));
  EXPECT_EQ(handler_.deregistered_, 0);
}

// DP-037
TEST_F(RegistrarTest, OneSilentPluginDoesNotHoldUpAnother) {
  Plugin1().silent = true;
  MakeSocket("p.sock");
  plugins_.At(folder() / "q.sock").info = Info("q", "/q.sock");
  MakeSocket("q.sock");
  Tell(EventKind::kRescan);
  EXPECT_THAT(handler_.registered_, ElementsAre("q at /q.sock"));
}

TEST_F(RegistrarTest, NothingHappensAfterTheRegistrarIsGone) {
  Plugin1().silent = true;
  MakeSocket("p.sock");
  plugins_.At(folder() / "q.sock").dial = UnavailableError("nobody listens");
  MakeSocket("q.sock");
  Tell(EventKind::kRescan);
  registrar_.reset();
  EXPECT_EQ(plugins_.open_, 0);
  EXPECT_EQ(executor_.timers(), 0u);
  executor_.Advance(milliseconds(600'000));
  EXPECT_EQ(plugins_.dialed_.size(), 2u);
}

}  // namespace
}  // namespace devmgr::registration
