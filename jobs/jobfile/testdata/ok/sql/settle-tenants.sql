select id from tenants
