-------------------------------- MODULE Refund --------------------------------
\* A refund that survives crashes, as package operations sends it. A refund has no
\* reference and the gateway no idempotency key, so what was refunded before is
\* stored before the request leaves, and after a lost response the difference decides.
\*
\* Others may refund the same transaction: a person in the dashboard, another
\* system. The operation can't tell their refund from its own by the amount alone.
EXTENDS Integers, FiniteSets

CONSTANTS
    Paid,      \* what the transaction can refund at most
    Amount,    \* what the operation refunds
    MaxSends,  \* requests at most
    MaxDeaths, \* deaths of the worker at most
    Rivals,    \* the amounts that others refund, each once
    Bug        \* "none", or the name of a defect that a property must find

VARIABLES
    refunded,  \* by the gateway, in total
    own,       \* requests of the operation that were applied
    flight,    \* requests that the gateway may still receive
    heard,     \* the response that waits for the worker: "", "applied", "rejected"
    state,     \* stored: "new", "sending", "applied", "rejected", "ambiguous"
    before,    \* stored: what was refunded before the request
    worker,    \* in memory: "free", "read", "sent", "doubt"
    sends, deaths, rivals

vars == <<refunded, own, flight, heard, state, before, worker, sends, deaths, rivals>>

Final == {"applied", "rejected", "ambiguous"}

Init ==
    /\ refunded = 0 /\ own = 0 /\ flight = 0 /\ heard = "" /\ state = "new" /\ before = 0
    /\ worker = "free" /\ sends = 0 /\ deaths = 0 /\ rivals = Rivals

\* A worker takes a new operation, reads the transaction and commits what it read.
Prepare ==
    /\ worker = "free" /\ state = "new" /\ sends < MaxSends
    /\ before' = refunded /\ state' = "sending" /\ worker' = "read"
    /\ UNCHANGED <<refunded, own, flight, heard, sends, deaths, rivals>>

Send ==
    /\ worker = "read"
    /\ flight' = flight + 1 /\ sends' = sends + 1 /\ worker' = "sent" /\ heard' = ""
    /\ UNCHANGED <<refunded, own, state, before, deaths, rivals>>

\* The gateway carries out a request that fits into what is left, or rejects it.
Receive ==
    /\ flight > 0
    /\ flight' = flight - 1
    /\ IF refunded + Amount <= Paid
       THEN refunded' = refunded + Amount /\ own' = own + 1 /\ heard' = IF worker = "sent" THEN "applied" ELSE heard
       ELSE refunded' = refunded /\ own' = own /\ heard' = IF worker = "sent" THEN "rejected" ELSE heard
    /\ UNCHANGED <<state, before, worker, sends, deaths, rivals>>

Drop ==
    /\ flight > 0 /\ flight' = flight - 1
    /\ UNCHANGED <<refunded, own, heard, state, before, worker, sends, deaths, rivals>>

\* The response arrives and is committed with the merchant's OnResult.
Settle ==
    /\ worker = "sent" /\ heard # ""
    /\ state' = heard /\ worker' = "free" /\ heard' = ""
    /\ UNCHANGED <<refunded, own, flight, before, sends, deaths, rivals>>

\* The response is lost.
Lose ==
    /\ worker = "sent"
    /\ worker' = "doubt" /\ heard' = ""
    /\ UNCHANGED <<refunded, own, flight, state, before, sends, deaths, rivals>>

\* The worker dies at any point and loses what it had in memory.
Die ==
    /\ worker # "free" /\ deaths < MaxDeaths
    /\ deaths' = deaths + 1 /\ worker' = "free" /\ heard' = ""
    /\ UNCHANGED <<refunded, own, flight, state, before, sends, rivals>>

\* Another worker takes an operation that was being sent: it is in doubt.
Take ==
    /\ worker = "free" /\ state = "sending"
    /\ worker' = "doubt"
    /\ UNCHANGED <<refunded, own, flight, heard, state, before, sends, deaths, rivals>>

\* The doubt is settled by reading, once no request can arrive any more. The
\* bug reads too early.
Read ==
    /\ worker = "doubt" /\ (flight = 0 \/ Bug = "read too early")
    /\ worker' = "free"
    /\ state' = IF refunded = before THEN "new"
                ELSE IF refunded = before + Amount THEN "applied"
                ELSE IF Bug = "guess" THEN "new" ELSE "ambiguous"
    /\ UNCHANGED <<refunded, own, flight, heard, before, sends, deaths, rivals>>

\* The code that merchants write: after a lost response, send again.
Naive ==
    /\ Bug = "send again" /\ worker = "doubt"
    /\ worker' = "free" /\ state' = "new"
    /\ UNCHANGED <<refunded, own, flight, heard, before, sends, deaths, rivals>>

Rival ==
    \E a \in rivals :
        /\ rivals' = rivals \ {a}
        /\ refunded + a <= Paid /\ refunded' = refunded + a
        /\ UNCHANGED <<own, flight, heard, state, before, worker, sends, deaths>>

Next ==
    \/ Prepare \/ Send \/ Receive \/ Drop \/ Settle \/ Lose \/ Die \/ Take \/ Read \/ Naive \/ Rival

Spec == Init /\ [][Next]_vars

\* The operation moves its money at most once, now and by what is still in flight.
NeverTwice == own <= 1

\* A rejected operation has moved nothing and can move nothing.
RejectedMeansNothing == (state = "rejected") => (own = 0 /\ flight = 0)

\* An applied operation moved its money, or others moved exactly its amount.
AppliedMeansRefunded == (state = "applied") => (own = 1 \/ refunded >= before + Amount)

\* A final operation sends no more.
FinalIsFinal == (state \in Final) => (flight = 0)

\* A person is asked only where others moved money on the transaction.
AmbiguousHasARival == (state = "ambiguous") => (rivals # Rivals)
===============================================================================
