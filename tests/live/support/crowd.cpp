// SPDX-License-Identifier: MIT
//
// Leading conversations, a thread's share of them from one poll().

#include "support/crowd.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>

namespace hello::test {
namespace {

constexpr std::size_t kFaultsMax = 10;
constexpr Milliseconds kStopCheckPeriod(50);

/// Waits until a conversation has something to do.
void wait_for_any(const std::vector<Conversation>& conversations) {
    std::vector<pollfd> sockets;
    Clock::time_point wake = Clock::now() + kStopCheckPeriod;
    for (const Conversation& conversation : conversations) {
        sockets.push_back({conversation.fd(), conversation.events(), 0});
        wake = std::min(wake, conversation.wakes_at());
    }
    const auto pause = std::chrono::ceil<Milliseconds>(wake - Clock::now()).count();
    poll(sockets.data(), sockets.size(), static_cast<int>(std::max<std::int64_t>(pause, 0)));
}

}  // namespace

CrowdTotals& CrowdTotals::operator+=(const CrowdTotals& other) {
    conversations += other.conversations;
    abandoned += other.abandoned;
    half_closed += other.half_closed;
    requests += other.requests;
    answers += other.answers;
    octets += other.octets;
    return *this;
}

Crowd::Crowd(std::uint16_t port, const CrowdOptions& options) : port_(port), options_(options) {
    for (std::size_t index = 0; index < options_.threads; ++index) {
        threads_.emplace_back([this, index] { run(options_.seed * 1000 + index); });
    }
}

Crowd::~Crowd() {
    stop();
}

void Crowd::stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
}

void Crowd::run(std::uint64_t seed) {
    std::mt19937_64 source(seed);
    std::vector<Conversation> conversations;
    CrowdTotals totals;
    try {
        while (!stopping_ || !conversations.empty()) {
            while (!stopping_ && conversations.size() < options_.clients_per_thread &&
                   add(conversations, source)) {
            }
            wait_for_any(conversations);
            lead(conversations, totals);
        }
    } catch (const std::exception& error) {
        report(error.what());
    }
    const std::lock_guard lock(mutex_);
    totals_ += totals;
}

/// False when this machine has no port left at the moment.
bool Crowd::add(std::vector<Conversation>& conversations, std::mt19937_64& source) const {
    try {
        conversations.emplace_back(port_, ConversationPlan::random(source));
        return true;
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::address_not_available) {
            throw;
        }
        return false;
    }
}

void Crowd::lead(std::vector<Conversation>& conversations, CrowdTotals& totals) {
    std::erase_if(conversations, [&](Conversation& conversation) {
        if (conversation.advance()) {
            return false;
        }
        const Ending ending = conversation.plan().ending;
        totals += {.conversations = 1,
                   .abandoned = ending == Ending::Abandon ? 1U : 0U,
                   .half_closed = ending == Ending::HalfClose ? 1U : 0U,
                   .requests = conversation.plan().requests,
                   .answers = conversation.answered(),
                   .octets = conversation.octets_received()};
        if (!conversation.fault().empty()) {
            report(conversation.fault());
        }
        return true;
    });
}

void Crowd::report(const std::string& fault) {
    const std::lock_guard lock(mutex_);
    if (faults_.size() < kFaultsMax) {
        faults_.push_back(fault);
    }
    has_faults_ = true;
    stopping_ = true;
}

}  // namespace hello::test
