-------------------------------- MODULE Inbox --------------------------------
\* The webhook inbox: events are stored before the gateway gets a 200, and workers
\* handle them under leases. HandleTx writes the handler's effect and the event's
\* completion in one transaction.
\*
\* The gateway may deliver an event any number of times. A worker may die at any
\* point, and its lease may run out while it still works, since a lease is a
\* guess about time. Time is not modelled: a lease may end at any point.
EXTENDS Integers, FiniteSets

CONSTANTS
    Events,         \* a set of numbers
    Resource,       \* the resource of each event: Resource[e]
    Workers,
    MaxDeliveries,  \* deliveries of an event at most
    MaxAttempts,    \* claims of an event before it is dead
    Bug             \* "none", or the name of a defect that a property must find

VARIABLES
    sent,      \* deliveries of each event so far
    acked,     \* whether the gateway got a 200 for the event
    state,     \* of each event: "absent", "waiting", "claimed", "done", "dead"
    token,     \* of each event: the number of its newest claim
    holds,     \* of each worker: the event and the token that it works with, or <<0, 0>>
    effects    \* of each event: how often the handler's effect was committed

vars == <<sent, acked, state, token, holds, effects>>

Idle == <<0, 0>>

Init ==
    /\ sent = [e \in Events |-> 0]
    /\ acked = [e \in Events |-> FALSE]
    /\ state = [e \in Events |-> "absent"]
    /\ token = [e \in Events |-> 0]
    /\ holds = [w \in Workers |-> Idle]
    /\ effects = [e \in Events |-> 0]

\* A delivery is stored, or is known already, and is acknowledged.
Deliver(e) ==
    /\ sent[e] < MaxDeliveries
    /\ sent' = [sent EXCEPT ![e] = @ + 1]
    /\ state' = [state EXCEPT ![e] = IF @ = "absent" THEN "waiting" ELSE @]
    /\ acked' = [acked EXCEPT ![e] = TRUE]
    /\ UNCHANGED <<token, holds, effects>>

\* The process dies, or the response is lost, after the event was stored.
DeliverUnacknowledged(e) ==
    /\ sent[e] < MaxDeliveries
    /\ sent' = [sent EXCEPT ![e] = @ + 1]
    /\ state' = [state EXCEPT ![e] = IF @ = "absent" THEN "waiting" ELSE @]
    /\ UNCHANGED <<acked, token, holds, effects>>

\* The process dies before the event was stored. The bug acknowledges first.
DeliverLost(e) ==
    /\ sent[e] < MaxDeliveries
    /\ sent' = [sent EXCEPT ![e] = @ + 1]
    /\ acked' = [acked EXCEPT ![e] = IF Bug = "acknowledge first" THEN TRUE ELSE @]
    /\ UNCHANGED <<state, token, holds, effects>>

\* No other event of the resource is claimed.
Free(e) ==
    \/ Bug = "claim any event"
    \/ \A o \in Events : ~(Resource[o] = Resource[e] /\ state[o] = "claimed")

Claim(w, e) ==
    /\ holds[w] = Idle /\ state[e] = "waiting" /\ Free(e)
    /\ token[e] < MaxAttempts
    /\ state' = [state EXCEPT ![e] = "claimed"]
    /\ token' = [token EXCEPT ![e] = @ + 1]
    /\ holds' = [holds EXCEPT ![w] = <<e, token[e] + 1>>]
    /\ UNCHANGED <<sent, acked, effects>>

\* Where an event rests after an attempt that did not complete it.
Rest(e) == IF token[e] < MaxAttempts THEN "waiting" ELSE "dead"

\* A lease runs out. Its worker may be dead, or slow and unaware of it.
LeaseEnds(e) ==
    /\ state[e] = "claimed"
    /\ state' = [state EXCEPT ![e] = Rest(e)]
    /\ UNCHANGED <<sent, acked, token, holds, effects>>

\* Whether the claim of w still counts.
Counts(w) == state[holds[w][1]] = "claimed" /\ token[holds[w][1]] = holds[w][2]

\* The handler's transaction ends: effect and completion are committed together
\* if the claim still counts, and rolled back otherwise.
Commit(w) ==
    /\ holds[w] # Idle
    /\ LET e == holds[w][1] IN
         IF Counts(w) \/ (Bug = "commit without the token" /\ state[e] # "dead")
         THEN /\ effects' = [effects EXCEPT ![e] = @ + 1]
              /\ state' = [state EXCEPT ![e] = "done"]
         ELSE /\ effects' = [effects EXCEPT ![e] = IF Bug = "effect outside the transaction" THEN @ + 1 ELSE @]
              /\ state' = state
    /\ holds' = [holds EXCEPT ![w] = Idle]
    /\ UNCHANGED <<sent, acked, token>>

\* The handler returns an error.
Fail(w) ==
    /\ holds[w] # Idle
    /\ LET e == holds[w][1] IN
         state' = [state EXCEPT ![e] = IF Counts(w) THEN Rest(e) ELSE @]
    /\ holds' = [holds EXCEPT ![w] = Idle]
    /\ UNCHANGED <<sent, acked, token, effects>>

\* The worker's process dies. Its transaction is rolled back.
Die(w) ==
    /\ holds[w] # Idle
    /\ holds' = [holds EXCEPT ![w] = Idle]
    /\ UNCHANGED <<sent, acked, state, token, effects>>

Next ==
    \/ \E e \in Events : Deliver(e) \/ DeliverUnacknowledged(e) \/ DeliverLost(e) \/ LeaseEnds(e)
    \/ \E w \in Workers : Commit(w) \/ Fail(w) \/ Die(w) \/ \E e \in Events : Claim(w, e)

Spec == Init /\ [][Next]_vars

\* What the gateway believes delivered is stored.
NoAcknowledgedEventIsLost == \A e \in Events : acked[e] => (state[e] # "absent")

\* An effect is committed at most once, however often the event came and
\* whichever workers had it.
EffectAtMostOnce == \A e \in Events : effects[e] <= 1

\* A done event has its effect; one that is not done has none.
DoneMeansApplied == \A e \in Events : (state[e] = "done") <=> (effects[e] = 1)

\* Two events of one resource are never handled under two valid claims.
OneClaimPerResource ==
    \A e, o \in Events :
        (e # o /\ Resource[e] = Resource[o]) => ~(state[e] = "claimed" /\ state[o] = "claimed")

\* An event that is stored can still be claimed, is being handled, or is at rest
\* for a person.
NothingIsStuck ==
    \A e \in Events : (state[e] = "waiting") => (token[e] < MaxAttempts)
==============================================================================
