package lockrepo

// $1 name, $2 holder, $3 grant id, $4 ttl, $5 key, $6 reenter: also take a row
// whose holder and key are the caller's. One row always; see the function.
const acquireSQL = `
select outcome, coalesce(token, 0), coalesce(holder, ''), acquired_at, expires_at
  from pawl.acquire($1::text, $2::text, $3::text::uuid, $4::bigint * interval '1 us', $5::text, $6::boolean)`
