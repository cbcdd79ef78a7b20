------------------------------- MODULE Create -------------------------------
\* A create whose responses may be lost, as the client of package gateway makes it.
\*
\* One merchant pays one order: it stores a reference, sends a create with it, and
\* repeats the create while the client's rules allow it. The merchant's process may
\* die and start again with the stored reference. Rivals are other callers that
\* use the same reference, such as a second replica.
\*
\* The network delivers a request at any later time, or never. It may lose any
\* response. The gateway promises one thing: it carries out a reference once.
EXTENDS Integers, FiniteSets

CONSTANTS
    MaxAttempts,  \* requests that one run of the merchant sends at most
    MaxRuns,      \* runs of the merchant: one more than the times it dies
    MaxRivals,    \* creates by others with the same reference
    Remembers,    \* whether the merchant stores that it has sent, as package operations does
    Bug           \* "none", or the name of a defect that a property must find

VARIABLES
    flight,    \* requests that the gateway may still receive: <<run, attempt>>
    charges,   \* ids of the charges with the reference: the run that made each
    run,       \* the current run of the merchant
    attempt,   \* requests sent by this run
    state,     \* what the run does: "ready", "waiting", "ended", "dead"
    heard,     \* the response to the attempt: "", "created", "existing", "rejected"
    lost,      \* a request of this run may have been applied without our knowing
    result,    \* what the run told the merchant: "", "success", "rejected", "unknown", "notsent"
    rivals     \* creates by others so far

vars == <<flight, charges, run, attempt, state, heard, lost, result, rivals>>

Init ==
    /\ flight = {} /\ charges = {} /\ run = 1 /\ attempt = 0 /\ state = "ready"
    /\ heard = "" /\ lost = FALSE /\ result = "" /\ rivals = 0

\* The reference that a run sends. The bug makes a new one for each attempt.
Applied(r, a) ==
    IF Bug = "new reference" THEN charges \cup {<<r, a>>}
    ELSE IF charges = {} THEN {<<r, a>>} ELSE charges

\* The client sends the next attempt.
Send ==
    /\ state = "ready" /\ attempt < MaxAttempts
    /\ attempt' = attempt + 1
    /\ flight' = flight \cup {<<run, attempt + 1>>}
    /\ state' = "waiting" /\ heard' = ""
    /\ UNCHANGED <<charges, run, lost, result, rivals>>

\* The attempt fails before a byte leaves: dial, DNS, TLS.
NotSent ==
    /\ state = "ready" /\ attempt < MaxAttempts
    /\ attempt' = attempt + 1
    /\ IF attempt + 1 < MaxAttempts
       THEN state' = "ready" /\ result' = result
       ELSE state' = "ended" /\ result' = IF lost THEN "unknown" ELSE "notsent"
    /\ UNCHANGED <<flight, charges, run, heard, lost, rivals>>

\* The gateway receives a request, carries it out or returns the existing charge.
\* The response reaches the client only if it still waits for that attempt.
Apply ==
    \E m \in flight :
        /\ flight' = flight \ {m}
        /\ charges' = Applied(m[1], m[2])
        /\ heard' = IF m = <<run, attempt>> /\ state = "waiting" /\ heard = ""
                    THEN IF charges = {} THEN "created" ELSE "existing" ELSE heard
        /\ UNCHANGED <<run, attempt, state, lost, result, rivals>>

\* The gateway rejects a request without carrying it out. A token for one use is
\* rejected after it was used, so a rejection may be the first attempt's doing.
Reject ==
    \E m \in flight :
        /\ flight' = flight \ {m}
        /\ heard' = IF m = <<run, attempt>> /\ state = "waiting" /\ heard = "" THEN "rejected" ELSE heard
        /\ UNCHANGED <<charges, run, attempt, state, lost, result, rivals>>

\* The network drops a request.
DropRequest ==
    \E m \in flight :
        /\ flight' = flight \ {m}
        /\ UNCHANGED <<charges, run, attempt, state, heard, lost, result, rivals>>

\* A response arrives.
Receive ==
    /\ state = "waiting" /\ heard # ""
    /\ state' = "ended"
    /\ result' = CASE heard \in {"created", "existing"} -> "success"
                   [] lost /\ Bug # "definite after a loss" -> "unknown"
                   [] OTHER -> "rejected"
    /\ UNCHANGED <<flight, charges, run, attempt, heard, lost, rivals>>

\* No response arrives: a timeout, a reset, a 5xx. The request may still be in
\* flight. The client tries again, or looks the reference up and gives up.
Lose ==
    /\ state = "waiting"
    /\ lost' = TRUE /\ heard' = ""
    /\ state' = IF attempt < MaxAttempts THEN "ready" ELSE "looking"
    /\ UNCHANGED <<flight, charges, run, attempt, result, rivals>>

\* The lookup finds the charge, or not. Not found is no proof: a request may still arrive.
Look ==
    /\ state = "looking"
    /\ state' = "ended"
    /\ result' = IF charges # {} THEN "success"
                 ELSE IF Bug = "absence is proof" THEN "rejected" ELSE "unknown"
    /\ UNCHANGED <<flight, charges, run, attempt, heard, lost, rivals>>

\* The lookup fails as well.
LookFails ==
    /\ state = "looking"
    /\ state' = "ended" /\ result' = "unknown"
    /\ UNCHANGED <<flight, charges, run, attempt, heard, lost, rivals>>

\* The process dies at any point and starts again; so does a merchant who repeats
\* a create of unknown outcome. Both use the reference that is stored with the order.
Again ==
    /\ run < MaxRuns
    /\ state # "ended" \/ result \in {"unknown", "notsent"}
    /\ run' = run + 1 /\ attempt' = 0 /\ state' = "ready" /\ heard' = ""
    /\ result' = ""
    /\ lost' = (Remembers /\ (lost \/ attempt > 0))
    /\ UNCHANGED <<flight, charges, rivals>>

Rival ==
    /\ rivals < MaxRivals
    /\ rivals' = rivals + 1
    /\ charges' = IF charges = {} THEN {<<0, rivals + 1>>} ELSE charges
    /\ UNCHANGED <<flight, run, attempt, state, heard, lost, result>>

Next == \/ Send \/ NotSent \/ Apply \/ Reject \/ DropRequest \/ Receive \/ Lose \/ Look \/ LookFails \/ Again \/ Rival

Spec == Init /\ [][Next]_vars

\* A reference is charged once.
AtMostOneCharge == Cardinality(charges) <= 1

\* A success names a charge that exists.
SuccessIsThatCharge == result = "success" => charges # {}

\* A definite failure is final: no request of this run has made a charge or can
\* still make one.
DefiniteFailureIsFinal ==
    (result \in {"rejected", "notsent"}) =>
        ( /\ \A m \in flight : m[1] # run
          /\ \A c \in charges : c[1] # run )

\* The same over all runs of the merchant. It holds only for a merchant that
\* stores what it has sent, as package operations does.
NoForgottenCharge ==
    (result \in {"rejected", "notsent"}) =>
        ( /\ flight = {}
          /\ \A c \in charges : c[1] = 0 )
=============================================================================
